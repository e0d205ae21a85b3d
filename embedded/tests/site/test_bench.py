"""`bin/test --bench` borrows a bench: here a made-up one, with old tools and another checkout in it."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from homes import bench as homes_bench
from homes.bench import ROOT, Bench

# what v15's developer requirements pin
OLD = "6.77.0"


@pytest.fixture
def bench(tmp_path) -> Bench:
	folder = tmp_path / "bench"
	for name in ("apps/frappe", "sites/assets", "other/dartwing_jobs"):
		(folder / name).mkdir(parents=True)
	venv.create(folder / "env", symlinks=True)
	(packages,) = (folder / "env").glob("lib/python*/site-packages")
	(packages / "other.pth").write_text(str(folder / "other"))
	(folder / "other" / "dartwing_jobs" / "__init__.py").touch()
	_plant(packages, "frappe", "15.0.0", "attrs (>=20)", 'hypothesis ; extra == "dev"')
	_plant(packages, "attrs", "20.3.0")
	_plant(packages, "hypothesis", OLD)
	(folder / "sites" / "apps.txt").write_text("frappe\ndartwing_jobs\n")
	(folder / "sites" / "common_site_config.json").write_text('{"db_port": 3399}')
	return Bench(folder)


def _plant(packages: Path, name: str, version: str, *needed: str) -> None:
	(packages / f"{name}.py").write_text(f"__version__ = {version!r}")
	about = packages / f"{name}-{version}.dist-info"
	about.mkdir()
	lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {one}" for one in needed)]
	(about / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", *lines, ""]))


def ask(bench: Bench, expression: str, module: str) -> str:
	command = [bench.python, "-c", f"import {module}; print({expression})"]
	return bench.run(command, cwd=bench.sites, env=bench.environment()).strip()


def contents(folder: Path) -> dict[str, float]:
	return {
		str(path): path.lstat().st_mtime_ns for path in folder.rglob("*") if "__pycache__" not in path.parts
	}


def test_every_process_runs_this_checkout_whatever_the_bench_has(bench, monkeypatch):
	monkeypatch.setenv("PYTHONPATH", str(bench.folder / "other"))
	assert ask(bench, "dartwing_jobs.__file__", "dartwing_jobs") == str(
		ROOT / "dartwing_jobs" / "__init__.py"
	)


def test_our_tools_go_before_those_of_the_bench(bench, tmp_path):
	assert ask(bench, "hypothesis.__version__", "hypothesis") == OLD
	bench.tools = tmp_path / "tools"
	bench.tools.mkdir()
	_plant(bench.tools, "hypothesis", "6.999.0")
	assert ask(bench, "hypothesis.__version__", "hypothesis") == "6.999.0"


def test_what_the_benches_apps_need_is_pinned_and_its_tools_are_not(bench):
	pins = bench.run([bench.python, "-I", ROOT / "homes" / "pins.py", *bench.apps()])
	assert pins.split() == ["attrs==20.3.0", "frappe==15.0.0"]


def test_a_bench_that_is_borrowed_stays_as_it_is(bench, tmp_path):
	before = contents(bench.folder)
	(tmp_path / "beside").mkdir()
	homes_bench.stand_beside(bench, tmp_path / "beside")
	assert bench.sites == tmp_path / "beside" / "sites"
	assert (bench.sites / "apps.txt").read_text() == "frappe\ndartwing_jobs\n"
	assert bench.config() == {"db_port": 3399}
	assert (bench.sites.parent / "apps" / "frappe").resolve() == bench.folder / "apps" / "frappe"
	assert contents(bench.folder) == before


def test_a_folder_that_is_no_bench_is_refused(tmp_path):
	done = subprocess.run(
		[sys.executable, "-m", "homes.bench", "--bench", tmp_path],
		env={**os.environ, "PYTHONPATH": str(ROOT)},
		capture_output=True,
		text=True,
	)
	assert done.returncode == 1 and f"{tmp_path} is not a bench" in done.stderr
