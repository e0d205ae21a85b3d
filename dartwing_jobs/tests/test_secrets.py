"""Payloads that carry secrets are refused at every door; what only looks like a secret is not."""

import json
import string

import frappe
import pytest
from hypothesis import given
from hypothesis import strategies as some

from dartwing_jobs import secrets, submit, submit_many
from dartwing_jobs.engine import sanitize
from dartwing_jobs.errors import SecretInPayload
from dartwing_jobs.tests import look_alikes
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import make_job_type, make_template, new_job

SECRETS = look_alikes.secrets()
HARMLESS = look_alikes.harmless()
TEXT = string.ascii_letters + string.digits + "!%()+,.:;?^~ äß日🔑"
SENTINEL = "Zq7-never-shown-9xK"


def leaves(value) -> list:
	if isinstance(value, dict):
		return [leaf for one in value.values() for leaf in leaves(one)]
	return [leaf for one in value for leaf in leaves(one)] if isinstance(value, list) else [value]


def at(parameters, path: str):
	for step in path.split("."):
		parameters = parameters[int(step) if isinstance(parameters, list) else step]
	return parameters


def test_the_corpus_is_large_enough():
	assert min(len(SECRETS), len(HARMLESS)) >= 40


@pytest.mark.parametrize(("paths", "parameters"), SECRETS, ids=lambda one: str(one)[:40])
def test_a_secret_is_found_and_named_by_its_path(paths, parameters):
	assert secrets.find(parameters) == paths
	assert secrets.might_hold_secrets(json.dumps(parameters))


@pytest.mark.parametrize("parameters", HARMLESS, ids=lambda one: str(one)[:40])
def test_a_look_alike_is_not_found(parameters):
	assert secrets.find(parameters) == []


@pytest.mark.parametrize("put", ["in a list", "in an object", "both, deep down"])
def test_it_does_not_matter_where_it_is(put):
	def wrapped(parameters):
		whole = {"in a list": [1, parameters], "in an object": {"a": parameters}}
		return {"x": whole.get(put) or [{"y": [[{"z": parameters}]]}]}

	assert all(secrets.find(wrapped(parameters)) for _paths, parameters in SECRETS)
	assert not [one for one in HARMLESS if secrets.find(wrapped(one))]


@pytest.mark.parametrize(("paths", "parameters"), SECRETS, ids=lambda one: str(one)[:40])
@pytest.mark.parametrize("written", [json.dumps, repr])
def test_what_would_be_refused_is_masked_in_texts(paths, parameters, written):
	"""Where its name stands right before it, or it has a shape of its own."""
	masked = sanitize.text(f"The service answered: {written(parameters)}")
	for path in paths:
		value = at(parameters, path)
		if secrets.is_secret_name(path.split(".")[-1]) or secrets.has_secret(str(value)):
			assert sanitize.MASK in masked
			assert written(value) not in masked


def test_what_stands_in_a_text_is_masked_as_in_a_payload():
	"""By shape alone, without a name beside it."""
	for paths, parameters in SECRETS:
		for path in paths:
			value = at(parameters, path)
			if isinstance(value, str) and secrets.has_secret(value):
				assert not secrets.has_secret(sanitize.text(value)), path


@pytest.mark.parametrize("parameters", HARMLESS, ids=lambda one: str(one)[:40])
def test_harmless_texts_stay_readable(parameters):
	for leaf in leaves(parameters):
		if isinstance(leaf, str) and ": see the" not in leaf:
			assert sanitize.text(leaf) == leaf


@given(
	some.text(TEXT, min_size=1).filter(lambda text: not secrets.is_placeholder(text)),
	some.sampled_from(["password", "api_key", "clientSecret", "X-Auth-Token", "db.passwd", "private-key"]),
	some.lists(some.one_of(some.integers(0, 3), some.sampled_from("abc")), max_size=4),
)
def test_a_named_secret_is_found_whatever_it_is_and_wherever(value, name, way):
	parameters, path = {name: value}, name
	for step in way:
		place = isinstance(step, int)
		parameters = [None] * step + [parameters] if place else {step: parameters}
		path = f"{step}.{path}"
	assert secrets.find({"root": parameters}) == [f"root.{path}"]
	assert secrets.find({"root": parameters}, ["*." * (path.count(".") + 1) + "*"]) == []


@given(
	some.recursive(
		some.text() | some.integers() | some.none(),
		lambda of: some.lists(of) | some.dictionaries(some.text(), of),
	)
)
def test_any_tree_can_be_searched_and_masked(tree):
	found = secrets.find({"tree": tree})
	assert not found or secrets.might_hold_secrets(json.dumps(tree, ensure_ascii=False))
	text = json.dumps(tree, ensure_ascii=False)
	assert sanitize.text(sanitize.text(text)) == sanitize.text(text)


@given(some.text(some.sampled_from(TEXT.replace(" ", "") + "/@=&'\"-_"), max_size=300))
def test_masking_leaves_nothing_that_would_be_refused(text):
	assert not secrets.has_secret(sanitize.text(f"://a:{text}@b ?token={text} Bearer {text}"))


@pytest.mark.parametrize(
	("allowed", "is_allowed"),
	[
		("rows.0.token", True),
		("rows.*.token", True),
		("*.*.*", True),
		("rows.*", False),
		("rows.*.token.x", False),
		("rows.1.token", False),
		("token", False),
		("", False),
	],
)
def test_an_allowed_path_is_exact_but_for_stars(allowed, is_allowed):
	assert (secrets.find({"rows": [{"token": "abc-1"}]}, [allowed]) == []) == is_allowed


@pytest.mark.parametrize(
	"text",
	[
		"://a:" * 50_000,
		"password " * 30_000,
		"a" * 300_000,
		"eyJ" * 90_000,
		"-----BEGIN PRIVATE KEY-----" * 9000,
	],
)
def test_nobody_slows_a_submit_down_by_a_clever_text(text):
	import time

	before = time.process_time()
	secrets.find({"note": text, "token_count": "https://"})
	sanitize.text(text)
	assert time.process_time() - before < 2


# every door

CUSTOMER = {"customer": {"auth": {"password": SENTINEL}}}
PATH = "customer.auth.password"


def refused(action) -> str:
	with pytest.raises(SecretInPayload) as error:
		action()
	shown = str(error.value) + str(frappe.local.message_log)
	assert SENTINEL not in shown
	return str(error.value)


def test_submit_says_where_the_secret_is_and_what_to_do(world):
	message = refused(lambda: submit("sample_job", CUSTOMER, world.a))
	assert PATH in message
	assert "Password field" in message
	assert "Parameters That May Look Secret" in message


def test_submit_refuses_it_as_text_too(world):
	refused(lambda: submit("sample_job", json.dumps(CUSTOMER), world.a))
	refused(lambda: submit("sample_job", '{"p\\u0061ssword": "' + SENTINEL + '"}', world.a))
	refused(lambda: submit("sample_job", {"rows": ({"password": SENTINEL},)}, world.a))


def test_submit_many_refuses_all_when_one_has_a_secret(world):
	mark = frappe.generate_hash(length=10)
	many = [{"steps": 1}, CUSTOMER, {"steps": 2}]
	assert PATH in refused(lambda: submit_many("sample_job", many, world.a, request_id=mark))
	assert not frappe.db.exists("Background Job", {"request_id": mark})


def test_a_job_as_a_document_is_refused(world):
	job = new_job(world.a, input_parameters=json.dumps(CUSTOMER))
	assert PATH in refused(job.insert)
	job.flags.ignore_validate = True
	refused(job.insert)


def test_http_doors_refuse_it_and_do_not_repeat_it(world):
	browser = Browser(world.manager)
	body = {"job_type": "sample_job", "organization": world.a, "input_parameters": json.dumps(CUSTOMER)}
	answers = [
		browser.post("/api/resource/Background Job", **body),
		browser.call("frappe.client.insert", doc={"doctype": "Background Job", **body}),
	]
	assert {answer.json["exc_type"] for answer in answers} == {"SecretInPayload"}
	assert not [answer for answer in answers if SENTINEL in answer.get_data(as_text=True)]


def test_templates_and_schedules_are_refused(world):
	refused(lambda: make_template(world.a, default_params=json.dumps(CUSTOMER)))
	template = make_template(world.a)
	template.default_params = json.dumps(CUSTOMER)
	refused(template.save)
	schedule = {"doctype": "Job Schedule", "schedule_name": "S", "organization": world.a}
	schedule |= {"job_template": template.name, "cron_expression": "0 0 * * *"}
	refused(frappe.get_doc({**schedule, "param_overrides": json.dumps(CUSTOMER)}).insert)


def test_a_type_allows_what_it_lists_and_nothing_else(world):
	job_type = make_job_type(allowed_secrets=f"something.else\n {PATH} \n").name
	assert submit(job_type, CUSTOMER, world.a).name
	assert new_job(world.a, job_type=job_type, input_parameters=json.dumps(CUSTOMER)).insert().name
	assert make_template(world.a, job_type=job_type, default_params=json.dumps(CUSTOMER)).name
	assert "0.password" in refused(
		lambda: submit(job_type, {**CUSTOMER, "l": [{"password": SENTINEL}]}, world.a)
	)


def test_a_secret_that_is_a_key_is_not_repeated(world):
	token = "gh" + "p_" + "a1B2" * 9
	with pytest.raises(SecretInPayload) as error:
		submit("sample_job", {"by_token": {token: 1}}, world.a)
	assert token not in str(error.value)
