"""How defaults and overrides become one: the examples of docs/templates.md, and laws that always hold."""

import copy
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

import dartwing_jobs
from dartwing_jobs.engine.intake.templates import merged

TEXT = (Path(dartwing_jobs.__file__).parents[1] / "docs" / "templates.md").read_text()
EXAMPLES = re.findall(r"^\| `({.*})` \| `({.*})` \| `({.*})` \|$", TEXT, re.M)
FAR_DEEPER_THAN_PYTHON_GOES = 100_000

leaves = some.none() | some.booleans() | some.integers(0, 9) | some.sampled_from(["", "x"])
keys = some.sampled_from("abc")
values = some.recursive(
	leaves,
	lambda below: some.lists(below, max_size=3) | some.dictionaries(keys, below, max_size=3),
	max_leaves=12,
)
objects = some.dictionaries(keys, values, max_size=3)


def as_the_rfc_says(target, patch):
	"""RFC 7396, section 2, as it is written there."""
	if not isinstance(patch, dict):
		return patch
	result = dict(target) if isinstance(target, dict) else {}
	for key, value in patch.items():
		if value is None:
			result.pop(key, None)
		else:
			result[key] = as_the_rfc_says(result.get(key), value)
	return result


def nulls_in(value) -> int:
	"""How many keys have no value; what is in a list is not looked at."""
	if not isinstance(value, dict):
		return value is None
	return sum(map(nulls_in, value.values()))


def nested(depth: int, leaf) -> dict:
	value = leaf
	for _ in range(depth):
		value = {"a": value}
	return value


def test_the_page_has_its_examples():
	assert len(EXAMPLES) > 20


@pytest.mark.parametrize(("defaults", "overrides", "expected"), EXAMPLES)
def test_an_example_of_the_page(defaults, overrides, expected):
	assert merged(json.loads(defaults), json.loads(overrides)) == json.loads(expected)


@given(objects, objects)
def test_it_is_what_the_rfc_says(defaults, overrides):
	assert merged(defaults, overrides) == as_the_rfc_says(defaults, overrides)


@given(objects)
def test_nothing_overridden_changes_nothing(defaults):
	assert merged(defaults, {}) == defaults


@given(objects)
def test_overrides_alone_leave_no_nulls(overrides):
	assert nulls_in(merged({}, overrides)) == 0


@given(objects, objects)
def test_overriding_twice_is_overriding_once(defaults, overrides):
	once = merged(defaults, overrides)
	assert merged(once, overrides) == once


@given(objects, objects)
def test_neither_side_is_changed(defaults, overrides):
	before = copy.deepcopy((defaults, overrides))
	merged(defaults, overrides)
	assert (defaults, overrides) == before


def test_depth_is_no_matter():
	"""Whoever sends such JSON is to hear that it is nested too deep, not that Python ran out of stack."""
	deep = merged(nested(FAR_DEEPER_THAN_PYTHON_GOES, 1), nested(FAR_DEEPER_THAN_PYTHON_GOES, 2))
	for _ in range(FAR_DEEPER_THAN_PYTHON_GOES):
		deep = deep["a"]
	assert deep == 2
