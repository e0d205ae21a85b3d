"""Parameters that are not JSON are refused at every door, with the path of the value; none becomes text."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import frappe
import pytest

from dartwing_jobs import group, job_handler, parameters, replay, schedule, submit, submit_from_template
from dartwing_jobs import submit_many as submit_all
from dartwing_jobs.engine import drain
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.tests.world import REPEATABLE, make_job_type, make_queue, make_template, new_job


class Thing:
	def __str__(self) -> str:
		return "a text that must not be stored"


NOT_JSON = {
	"set": {1, 2},
	"frozenset": frozenset("ab"),
	"bytes": b"\x00abc",
	"bytearray": bytearray(b"abc"),
	"datetime": datetime(2026, 1, 31, 9),
	"date": date(2026, 1, 31),
	"time": time(9),
	"timedelta": timedelta(days=1),
	"Decimal": Decimal("1.10"),
	"complex": 1j,
	"range": range(3),
	"Thing": Thing(),
	"type": Thing,
	"function": Thing.__str__,
}
NO_NUMBERS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
KEYS = [1, 1.5, True, None, (1, 2), b"a"]
WHEN = datetime(2026, 1, 31, 9)


def refused(action: Callable) -> str:
	with pytest.raises(InvalidJobError) as error:
		action()
	return str(error.value)


@pytest.mark.parametrize("kind", NOT_JSON)
@pytest.mark.parametrize(
	("wrap", "path"),
	[
		(lambda value: {"when": value}, "parameters.when"),
		(lambda value: {"items": [0, 1, 2, {"when": value}]}, "parameters.items[3].when"),
		(lambda value: {"rows": ((1, value),)}, "parameters.rows[0][1]"),
	],
)
def test_a_value_is_refused_with_its_path_and_its_type(kind, wrap, path):
	said = refused(lambda: parameters.canonical(wrap(NOT_JSON[kind]), "Parameters"))
	assert said.startswith(f"{path} is a {kind}, which JSON does not have. Give ")


@pytest.mark.parametrize("word", NO_NUMBERS)
def test_a_number_that_json_does_not_have_is_refused_with_its_path(word):
	said = refused(lambda: parameters.canonical({"rows": [{"x": NO_NUMBERS[word]}]}, "Parameters"))
	assert said.startswith(f"parameters.rows[0].x is {word}, which JSON does not have.")


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_a_key_that_is_no_text_is_refused(key):
	said = refused(lambda: parameters.canonical({"rows": [{key: "a"}]}, "Parameters"))
	assert said.startswith(f"parameters.rows[0] has the key {key!r}, a ")


def test_a_number_that_python_cannot_write_is_refused():
	assert "digits" in refused(lambda: parameters.canonical({"n": 10**5000}, "Parameters"))


@pytest.mark.parametrize(
	("kind", "advice"),
	[("datetime", "isoformat()"), ("Decimal", "str(value)"), ("set", "sorted(value)"), ("bytes", "file")],
)
def test_the_refusal_says_what_to_give_instead(kind, advice):
	assert advice in refused(lambda: parameters.canonical({"x": NOT_JSON[kind]}, "Parameters"))


def test_what_json_has_is_stored_as_it_is():
	given = {"a": [1, -2.5, True, None, "ä"], "b": {"c": {}}, "d": (1, 2), "n": 10**300}
	stored = parameters.load(parameters.canonical(frappe._dict(given), "Parameters"))
	assert stored == {**given, "d": [1, 2]}


def test_a_path_is_short_and_drawn_without_markup_and_has_no_secret():
	token = "gh" + "p_" + "a1B2" * 9
	for key in ("<img src=x onerror=alert(1)>", "x" * 10_000, token):
		said = refused(lambda key=key: parameters.canonical({key: {1}}, "Parameters"))
		assert len(said) < 400
		assert token not in said
		assert "<img" not in str(frappe.message_log)


# every door


@pytest.fixture
def counted(world):
	"""That a refused submit leaves no row."""
	before = frappe.db.count("Background Job")
	yield
	assert frappe.db.count("Background Job") == before


def doors(organization: str) -> dict[str, Callable]:
	bad = {"items": [{"when": WHEN}]}
	job = {"job_type": REPEATABLE, "parameters": bad}
	return {
		"submit": lambda: submit(REPEATABLE, bad, organization),
		"submit_many": lambda: submit_all(REPEATABLE, [{"n": 1}, bad], organization),
		"repeat": lambda: submit(REPEATABLE, bad, organization, repeat="0 0 * * *"),
		"a document": lambda: new_job(organization, input_parameters=bad).insert(),
		"a template's defaults": lambda: make_template(organization, default_params=bad),
		"a schedule's parameters": lambda: schedule(
			"Nightly", "0 0 * * *", job_type=REPEATABLE, parameters=bad, organization=organization
		),
		"a group's member": lambda: group("Both", [job], organization=organization),
		"a group's callback": lambda: group(
			"Both", [{"job_type": REPEATABLE}], organization=organization, on_completion=job
		),
	}


@pytest.mark.parametrize("door", doors(""))
def test_every_door_refuses_it(world, counted, door):
	assert "items[0].when is a datetime" in refused(doors(world.a)[door])
	frappe.db.rollback()


def test_overrides_are_refused(world, counted):
	template = make_template(world.a).name
	assert "overrides.a[0]" in refused(lambda: submit_from_template(template, {"a": [WHEN]}))
	asked = {"template": template, "overrides": {"a": [WHEN]}, "organization": world.a}
	assert ".a[0]" in refused(lambda: schedule("Nightly", "0 0 * * *", **asked))


@job_handler
def submit_a_moment(given: dict, context) -> None:
	context.submit(REPEATABLE, {"when": WHEN})


def test_a_handler_and_a_replay_are_refused(world):
	queue = make_queue()
	job_type = make_job_type(handler_method=f"{__name__}.submit_a_moment", job_queue=queue).name
	job = submit(job_type, {}, world.a).name
	frappe.db.commit()
	drain.drain([queue])
	row = frappe.db.get_value("Background Job", job, ["status", "error_message"], as_dict=True)
	assert row.status == "Dead Letter"
	assert "parameters.when is a datetime" in row.error_message
	assert "parameters.when is a datetime" in refused(lambda: replay(job, {"when": WHEN}))
	assert "nan" in refused(lambda: replay(job, '{"when": NaN}'))
