"""`bin/shell`: joins an embedded site that is running, such as bin/demo's, from another terminal."""

import argparse
import json
import os
import sys
from pathlib import Path

from homes import running
from homes.embedded import Home

EXAMPLES = """
bin/shell                                a Python console, connected to the site as Administrator
bin/shell < script.py                    runs a script that way
bin/shell bench execute dartwing_jobs.status --args '["JOB-2026-00001"]'
bin/shell bench worker                   one more worker
bin/shell python -m pytest /my_app       any command, in the sites folder
"""
CONNECT = """
import os, sys
import frappe, dartwing_jobs
frappe.init(os.environ["SITE"]); frappe.connect()
"""
GREET = """
print(f"Connected to {frappe.local.site} as {frappe.session.user}. Keep what you do with frappe.db.commit().")
"""
RUN_STDIN = """
exec(compile(sys.stdin.read(), "<stdin>", "exec"), {"frappe": frappe, "dartwing_jobs": dartwing_jobs})
"""
BENCH = [sys.executable, "-m", "frappe.utils.bench_helper", "frappe"]


def main(known: Path = running.KNOWN) -> None:
	arguments = _parse()
	home = joined(arguments.home or the_only(running.homes(known)))
	command = _command(arguments.command)
	os.chdir(home.sites)
	try:
		os.execvpe(command[0], command, home.environment())
	except FileNotFoundError:
		sys.exit(f"There is no command {command[0]}.")


def the_only(found: list[Path]) -> Path:
	if not found:
		sys.exit("No embedded site is running. Start one in another terminal: bin/demo")
	if len(found) > 1:
		listed = "\n".join(f"  bin/shell --home {home}" for home in found)
		sys.exit(f"Several embedded sites are running. Name one:\n{listed}")
	return found[0]


def joined(folder: Path) -> Home:
	"""The home in a folder, if it runs."""
	folder = folder.resolve()
	if not running.is_running(folder):
		sys.exit(f"No embedded site is running in {folder}.")
	config = folder / "sites" / "common_site_config.json"
	site = json.loads(config.read_text()).get("default_site") if config.exists() else None
	if not site or not (folder / "sites" / site / "site_config.json").exists():
		sys.exit(f"The site in {folder} is still being made. Try again in a moment.")
	return Home(folder, site, [])


def _command(given: list[str]) -> list[str]:
	if not given and sys.stdin.isatty():
		return [sys.executable, "-q", "-i", "-c", CONNECT + GREET]
	if not given:
		return [sys.executable, "-c", CONNECT + RUN_STDIN]
	if given[0] == "bench":
		return [*BENCH, *given[1:]]
	return [sys.executable if given[0] == "python" else given[0], *given[1:]]


def _folder(text: str) -> Path:
	"""As it is seen from where the user is."""
	return Path(os.environ.get("CALLED_FROM", ""), Path(text).expanduser())


def _parse() -> argparse.Namespace:
	parser = argparse.ArgumentParser(
		prog="bin/shell",
		description="Joins an embedded site that is running, such as that of bin/demo.",
		epilog=EXAMPLES,
		formatter_class=argparse.RawDescriptionHelpFormatter,
	)
	parser.add_argument("--home", type=_folder, help="the site's home, if several are running")
	parser.add_argument("command", nargs=argparse.REMAINDER, help="a command instead of the console")
	arguments = parser.parse_args()
	arguments.command = arguments.command[arguments.command[:1] == ["--"] :]
	return arguments


if __name__ == "__main__":
	main()
