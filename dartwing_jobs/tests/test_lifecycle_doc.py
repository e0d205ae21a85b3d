"""docs/lifecycle.md says what the code does."""

import re
from pathlib import Path

import dartwing_jobs
from dartwing_jobs.engine import states
from dartwing_jobs.engine.intake import frozen

TEXT = (Path(dartwing_jobs.__file__).parents[1] / "docs" / "lifecycle.md").read_text()


def rows_of_the_table() -> list[list[str]]:
	lines = [line for line in TEXT.splitlines() if line.startswith("| ") and "job." in line]
	return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def test_the_table_is_the_code():
	written = {(before, after): (trigger, event) for before, after, trigger, event, *_ in rows_of_the_table()}
	creation = written.pop(("-", states.PENDING))
	assert creation == tuple(states.CREATION)
	assert written == {pair: tuple(row) for pair, row in states.TRANSITIONS.items()}


def test_the_picture_is_the_code():
	names = {status.replace(" ", "_"): status for status in states.ALL}
	arrows = re.findall(r"^\s+(\w+|\[\*\]) --> (\w+|\[\*\])", TEXT, re.M)
	moves = {(names[a], names[b]) for a, b in arrows if "[*]" not in (a, b)}
	assert moves == set(states.TRANSITIONS)
	assert {names[b] for a, b in arrows if a == "[*]"} == {states.PENDING}
	assert {names[a] for a, b in arrows if b == "[*]"} == states.TERMINAL


def test_every_editable_field_is_named():
	for fieldname in frozen.EDITABLE_WHILE_WAITING:
		assert f"`{fieldname}`" in TEXT
