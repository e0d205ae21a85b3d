"""The demo's table fits the terminal, and is coloured on a terminal only."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from homes import table
from homes.tests.processes import project_environment, terminal

JOB = {"name": "JOB-2026-00001", "organization": "Acme of the long name 1234", "job_type": "demo_hopeless"}
JOB |= {"status": "Dead Letter", "progress": 40, "progress_message": None, "attempt": 3}
JOB |= {"error_message": "It did not work,\nand the reason takes more than a line to tell, as reasons do"}
JOBS = [SimpleNamespace(**JOB), SimpleNamespace(**JOB | {"status": "Completed", "error_message": ""})]
DRAW = f"from types import SimpleNamespace; from homes import table; table.draw([SimpleNamespace(**{JOB!r})])"


@pytest.mark.parametrize("columns", [14, 40, 60, 80, 100, 131, 200])
def test_lines_are_as_wide_as_the_terminal_at_most(columns):
	lines = table.lines(JOBS, columns, coloured=False)
	assert {len(line) for line in lines} == {min(columns, max(len(line) for line in lines))}
	assert all(line.startswith("JOB-2026-00001") for line in lines)


def test_80_columns_show_every_column_and_shorten_what_is_long():
	line = table.lines(JOBS, 80, coloured=False)[0]
	assert line == "JOB-2026-00001  Acme o…  demo_hope…  Dead Letter  ██░░░   40%  3   It did not w…"


def test_a_wide_terminal_shows_a_wide_bar_and_the_error_in_one_line():
	line = table.lines(JOBS, 200, coloured=False)[0]
	assert "████████░░░░░░░░░░░░   40%  attempt 3  It did not work, and the reason…" in line


@pytest.mark.parametrize(
	("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)]
)
def test_a_terminal_gets_colours_unless_they_are_not_wanted(variables, coloured):
	drawn = _drawn_on_a_terminal(**variables)
	assert ("\033[31mDead Letter\033[0m" in drawn) == coloured
	assert ("\033" in drawn) == coloured


def test_the_width_is_the_terminals_own():
	assert len(_drawn_on_a_terminal(NO_COLOR="1").rstrip("\r\n")) == 80


def test_without_a_terminal_there_are_no_colours():
	drawn = subprocess.run([sys.executable, "-c", DRAW], capture_output=True, text=True, env=_environment())
	assert "Dead Letter" in drawn.stdout
	assert "\033" not in drawn.stdout


def _drawn_on_a_terminal(**variables: str) -> str:
	with terminal(columns=80) as (ours, theirs):
		subprocess.run([sys.executable, "-c", DRAW], stdout=theirs, env=_environment(**variables), check=True)
		return os.read(ours, 10_000).decode()


def _environment(**variables: str) -> dict[str, str]:
	kept = project_environment(**variables)
	return {
		key: value for key, value in kept.items() if key not in ("COLUMNS", "NO_COLOR") or key in variables
	}
