"""The style of the source, checked before any test runs."""

import subprocess
import sys

from homes.environment import ROOT, VENV


def check() -> None:
	ruff = VENV / "bin" / "ruff"
	if subprocess.run([ruff, "check", "--quiet", "."], cwd=ROOT).returncode:
		sys.exit(1)
	if subprocess.run([ruff, "format", "--quiet", "--check", "."], cwd=ROOT).returncode:
		sys.exit("Run: .venv/bin/ruff format .")
