"""The package: one truth about version and dependencies, paths that exist, arrows that point one way."""

import ast
import os
import re
import runpy
import subprocess
import sys
import sysconfig
from importlib.metadata import distributions, requires, version
from pathlib import Path
from types import SimpleNamespace

import frappe
import hypothesis
import opentelemetry.sdk.trace
import pytest

import dartwing_jobs
from dartwing_jobs import hooks
from dartwing_jobs.engine import states
from homes import pins

ROOT = Path(dartwing_jobs.__file__).parents[1]
PACKAGE = ROOT / "dartwing_jobs"
PYPROJECT = (ROOT / "pyproject.toml").read_text()


def declared(key: str) -> str:
	return re.search(rf'^{key} = "(.+)"$', PYPROJECT, re.M).group(1)


def declared_dependencies() -> list[str]:
	text = re.search(r"^dependencies = \[(.*?)^\]", PYPROJECT, re.S | re.M).group(1)
	return re.findall(r'"([^"]+)"', text)


def test_requirements_equal_pyproject():
	lines = (ROOT / "requirements.txt").read_text().splitlines()
	assert [line for line in lines if not line.startswith("#")] == declared_dependencies()


def test_setup_py_says_the_same_as_pyproject(monkeypatch):
	said = {}
	stand_in = SimpleNamespace(setup=said.update, find_packages=lambda include: include)
	monkeypatch.setitem(sys.modules, "setuptools", stand_in)
	runpy.run_path(str(ROOT / "setup.py"))
	assert said["name"] == declared("name")
	assert said["description"] == declared("description")
	assert said["python_requires"] == declared("requires-python")
	assert said["install_requires"] == declared_dependencies()
	assert said["version"] == dartwing_jobs.__version__


def test_the_licence_is_mit_everywhere():
	assert 'license = { file = "license.txt" }' in PYPROJECT
	assert (ROOT / "license.txt").read_text().startswith("MIT License")
	assert hooks.app_license == "mit"
	assert 'license="MIT"' in (ROOT / "setup.py").read_text()


def test_the_changelog_knows_this_version():
	assert f"## {dartwing_jobs.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_dependencies_are_installed_and_used():
	sources = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py") if "tests" not in path.parts)
	for requirement in declared_dependencies():
		name = re.match(r"[\w-]+", requirement).group()
		assert version(name)
		module = name.replace("-", "_")
		assert name == "tzdata" or f"from {module} import" in sources  # zoneinfo reads tzdata by itself


def test_nothing_is_at_odds_in_this_environment():
	"""`pip check`: what we need resolves beside what Frappe pins."""
	check = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
	assert check.stdout, check.stderr
	ours = (
		"dartwing",
		"tzdata",
		"jsonschema",
		"referencing",
		"rpds",
		"prometheus",
		"opentelemetry",
	)
	complaints = [line for line in check.stdout.splitlines() if any(name in line for name in ours)]
	assert complaints == []


def test_the_installed_package_is_this_one():
	needed = [line for line in requires("dartwing_jobs") or [] if "extra ==" not in line]
	assert sorted(needed) == sorted(declared_dependencies())


def test_frappe_is_the_homes_own():
	"""Inside a bench `frappe` is the bench's; elsewhere it is the embedded site's."""
	home = Path(os.getcwd()).parent
	bench = home / "apps" / "frappe"
	expected = bench if bench.exists() else ROOT / "embedded"
	assert Path(frappe.__file__).resolve().is_relative_to(expected.resolve())


def test_the_suite_brings_its_own_tools():
	"""A bench may have others, and other versions; here nothing is taken from it, and nothing put into it."""
	for tool in (pytest, hypothesis, opentelemetry.sdk.trace):
		assert Path(tool.__file__).resolve().is_relative_to(ROOT / ".venv"), tool


def test_what_frappe_needs_is_not_replaced_by_what_the_suite_needs():
	"""What the suite brings along goes first on the path; of what Frappe has, too, it is the same version."""
	home = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
	there = {one.name: one.version for one in distributions(path=home)}
	needed = pins.installed_for(["frappe", "dartwing_jobs"])
	assert "referencing" in needed
	assert {name: version(name) for name in there if name in needed} == {
		name: number for name, number in there.items() if name in needed
	}


def test_every_process_runs_this_very_checkout():
	"""Workers are started as commands: with another checkout in the bench they would run that one."""
	command = [sys.executable, "-m", "frappe.utils.bench_helper", "frappe", "--site", frappe.local.site]
	asked = [*command, "execute", "dartwing_jobs.tests.answering.where_this_is"]
	done = subprocess.run(asked, capture_output=True, text=True)
	assert done.stdout.strip().strip('"') == str(PACKAGE), done.stderr


def test_the_app_never_asks_where_it_runs():
	for path in PACKAGE.rglob("*.py"):
		if "tests" not in path.parts:
			text = path.read_text()
			assert "embedded" not in text, path
			assert "in_test" not in text, path


def dotted_paths(value) -> list[str]:
	if isinstance(value, dict):
		return [path for item in value.values() for path in dotted_paths(item)]
	if isinstance(value, list):
		return [path for item in value for path in dotted_paths(item)]
	return [value] if isinstance(value, str) and value.startswith("dartwing_jobs.") else []


def test_every_path_in_hooks_leads_to_a_function():
	paths = dotted_paths({name: value for name, value in vars(hooks).items() if not name.startswith("_")})
	assert len(paths) > 10
	for path in paths:
		assert callable(frappe.get_attr(path)), path


# messages in Redis, rows in databases and readers of the docs name these: whoever moves one breaks them
KNOWN_ELSEWHERE = (
	"dartwing_jobs.engine.alerts.call_for_all",
	"dartwing_jobs.engine.alerts.tell",
	"dartwing_jobs.engine.drain.answer",
	"dartwing_jobs.engine.metrics.get_job_metrics",
	"dartwing_jobs.engine.pauses.mark_held",
	"dartwing_jobs.engine.pauses.pause",
	"dartwing_jobs.engine.pauses.resume",
	"dartwing_jobs.engine.retention.clean_up",
	"dartwing_jobs.engine.schedules.preview",
	"dartwing_jobs.engine.signatures.verify",
	"dartwing_jobs.engine.story.read",
	"dartwing_jobs.engine.successors.chain",
	"dartwing_jobs.engine.sweep.sweep",
)


@pytest.mark.parametrize("path", KNOWN_ELSEWHERE)
def test_a_path_that_others_know_is_still_there(path):
	assert callable(frappe.get_attr(path))


def test_every_folder_of_the_engine_says_what_lives_there_and_is_on_the_map():
	folders = [path.parent for path in (PACKAGE / "engine").rglob("__init__.py")]
	assert len(folders) > 5
	on_the_map = (ROOT / "CONTRIBUTING.md").read_text()
	for folder in folders:
		assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text())), folder
		assert f"| `{folder.relative_to(ROOT)}/` |" in on_the_map, folder


def test_every_file_of_the_engine_itself_is_on_the_map():
	on_the_map = (ROOT / "CONTRIBUTING.md").read_text().partition("### The engine")[2]
	names = [path.stem for path in (PACKAGE / "engine").glob("*.py") if path.stem != "__init__"]
	assert [name for name in names if f"`{name}`" not in on_the_map] == []


def test_status_words_are_written_in_one_place():
	"""`engine.states` owns them; a typo elsewhere would be a bug that no test sees."""
	words = {
		word for word in states.ALL if word not in ("Completed", "Failed", "Queued", "Canceled", "Running")
	}
	for path in [*PACKAGE.rglob("*.py")]:
		if "tests" in path.parts or path.name == "states.py":
			continue
		strings = {
			node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)
		}
		assert not words & {value for value in strings if isinstance(value, str)}, path


def imports_of(path: Path) -> set[str]:
	tree = ast.parse(path.read_text())
	modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
	return {
		*modules,
		*(name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names),
	}


@pytest.mark.parametrize("module", ["states", "rules/priorities", "rules/categories", "rules/queues"])
def test_tables_are_pure(module):
	assert not {
		name
		for name in imports_of(PACKAGE / "engine" / f"{module}.py")
		if "frappe" in name or "dartwing" in name
	}


def test_the_engine_knows_no_controllers():
	for path in (PACKAGE / "engine").rglob("*.py"):
		assert not {name for name in imports_of(path) if "doctype" in name}, path


def test_only_transitions_writes_a_status():
	writers = [
		path.name
		for path in PACKAGE.rglob("*.py")
		if "tests" not in path.parts
		and re.search(r'["\']status["\']:\s*to_status|\.set\(\w+\.status', path.read_text())
	]
	assert writers == ["transitions.py"]


def test_there_is_no_dumping_ground():
	assert not [
		path for path in PACKAGE.rglob("*.py") if path.stem in ("utils", "helpers", "common", "manager")
	]


def test_everything_that_apps_import_is_there():
	for name in dartwing_jobs.PUBLIC:
		assert callable(getattr(dartwing_jobs, name)), name
	with pytest.raises(AttributeError, match="has no submitt"):
		dartwing_jobs.submitt  # noqa: B018
