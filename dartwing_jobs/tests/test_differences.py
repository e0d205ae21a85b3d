"""What the log keeps of an edit: every change, its place, and no secret."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dartwing_jobs import differences

LEAF = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
TREE = st.recursive(
	LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)
PARAMETERS = st.dictionaries(st.text(max_size=3), TREE, max_size=3)


@pytest.mark.parametrize(
	("old", "new", "expected"),
	[
		({"a": 1}, {"a": 1}, []),
		({"a": 1}, {"a": 2}, [{"path": "/a", "from": 1, "to": 2}]),
		({"a": 1}, {}, [{"path": "/a", "from": 1}]),
		({}, {"a": None}, [{"path": "/a", "to": None}]),
		({"a": 1}, {"a": True}, [{"path": "/a", "from": 1, "to": True}]),
		(
			{"a": {"b": [1, 2]}},
			{"a": {"b": [1, 3, 4]}},
			[{"path": "/a/b/1", "from": 2, "to": 3}, {"path": "/a/b/2", "to": 4}],
		),
		({"a": [1]}, {"a": {"0": 1}}, [{"path": "/a", "from": [1], "to": {"0": 1}}]),
		({"a/b~": 1}, {"a/b~": 2}, [{"path": "/a~1b~0", "from": 1, "to": 2}]),
	],
)
def test_changes_have_a_place_and_both_values(old, new, expected):
	assert differences.between(old, new) == expected


@pytest.mark.parametrize(
	("old", "new"),
	[
		({"password": "geheim"}, {"password": "anders"}),
		({}, {"login": {"api_key": "geheim"}}),
		({"url": "https://me:geheim@example.com"}, {"url": "https://example.com"}),
	],
)
def test_secrets_are_masked(old, new):
	told = json.dumps(differences.between(old, new))
	assert "***" in told
	assert "geheim" not in told and "anders" not in told


def test_much_is_cut():
	(change,) = differences.between({"a": "x"}, {"a": "y" * 10_000})
	assert len(change["to"]) <= differences.LONGEST_VALUE + 1
	many = differences.between({}, {str(number): number for number in range(150)})
	assert (len(many), many[-1]) == (101, {"more": 50})


@settings(max_examples=50)
@given(PARAMETERS, PARAMETERS)
def test_nothing_differs_from_itself_and_anything_else_does(one, other):
	assert differences.between(one, one) == []
	same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
	assert (differences.between(one, other) == []) == same
