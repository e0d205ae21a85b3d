"""Secrets in errors are not stored, wherever an error is; what is harmless stays readable."""

import frappe
import pytest

from dartwing_jobs import PermanentError, TransientError, job_handler, submit
from dartwing_jobs.engine import drain, sanitize
from dartwing_jobs.tests.world import make_job_type, make_queue

SECRET = "hunter2-x9"
TEXTS = [
	"password={}",
	"Password: {}",
	"db_password = '{}'",
	"userPassword={}&next=1",
	"PWD={};UID=sa",
	"passphrase: {}",
	'{{"api_key": "{}"}}',
	"{{'token': '{}', 'page': 2}}",
	'{{"body": "{{\\"password\\": \\"{}\\"}}"}}',
	'{{"password": "a \\" quote {}"}}',
	"X-Api-Key: {}",
	"apikey={}",
	"client_secret={}",
	"SECRET_KEY={}",
	"aws_secret_access_key = {}",
	"refresh_token={}",
	"Authorization: Bearer {}",
	"Authorization: Basic {}",
	"Authorization: token key:{}",
	"got Bearer eyJhbGciOi.{}.signature for it",
	"Cookie: sid={}; path=/",
	"session_id={}",
	"GET https://example.com/?token={}&page=2 failed",
	"postgres://admin:{}@db.example.com/live",
	"redis://:{}@cache.example.com",
	"smtp://me:a@b{}@mail.example.com:25",
	"-----BEGIN RSA PRIVATE KEY-----\nMII{}\nabc\n-----END RSA PRIVATE KEY-----",
	'"private_key": "-----BEGIN PRIVATE KEY-----\\n{}\\n-----END PRIVATE KEY-----"',
	"credentials: {}",
]
HARMLESS = [
	"",
	"Wrong password",
	"The token has expired",
	"Basic authentication is not offered",
	"Bearer authentication required",
	"compass=north, bypass: yes, inside: out",
	"tokens: 512 of 4096",
	"3 passed, 1 failed",
	"See https://example.com:8080/a@b and mail me@example.com",
	"Ungültiger Wert: größer als 100 %",
	'File "/app/sign.py", line 12, in authorize\n    raise Refused(reason)',
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_secret_is_masked(text):
	masked = sanitize.text(text.format(SECRET))
	assert SECRET not in masked
	assert sanitize.MASK in masked
	assert sanitize.text(masked) == masked


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_harmless_stays(text):
	assert sanitize.text(text) == text


@pytest.mark.parametrize("rest", ["&page=2 failed", "; path=/", ", 'page': 2}", "@host/path"])
def test_what_follows_a_secret_stays(rest):
	start = "amqp://user:" if rest.startswith("@") else "token="
	assert sanitize.text(start + SECRET + rest) == start + sanitize.MASK + rest


@job_handler
def tell_a_secret(parameters: dict, context) -> None:
	error = {"transient": TransientError, "permanent": PermanentError}[parameters["kind"]]
	raise error(f"The service refused password={SECRET}")


@pytest.mark.parametrize("kind", ["transient", "permanent"])
def test_no_secret_is_stored_anywhere(world, kind):
	name = f"q:test-{frappe.generate_hash(length=8)}"
	queue = frappe.get_doc({"doctype": "Job Queue", "queue_name": name, "rq_queue": "default"}).insert().name
	job_type = make_job_type(handler_method=f"{__name__}.tell_a_secret").name
	job = submit(job_type, {"kind": kind}, world.a, job_queue=queue).name
	frappe.db.commit()
	drain.drain([queue])
	stored = [
		str(frappe.get_doc("Background Job", job).as_dict()),
		str(frappe.get_last_doc("Job Run", {"background_job": job}).as_dict()),
		*frappe.get_all("Job Execution Log", {"background_job": job}, pluck="message"),
	]
	assert not [text for text in stored if text and SECRET in text]
	assert all(f"password={sanitize.MASK}" in text for text in stored[:2])
	assert f"The service refused password={sanitize.MASK}" in stored


@job_handler
def note_a_secret(parameters: dict, context) -> None:
	context.progress(10, f"logged in with password={SECRET}")
	context.log(f"GET https://example.com/?token={SECRET}&page=2")


def test_no_secret_is_stored_in_notes_and_progress(world):
	queue = make_queue()
	job_type = make_job_type(handler_method=f"{__name__}.note_a_secret").name
	job = submit(job_type, {}, world.a, job_queue=queue).name
	frappe.db.commit()
	drain.drain([queue])
	assert frappe.db.get_value("Background Job", job, "progress_message") == "logged in with password=***"
	notes = frappe.get_all("Job Execution Log", {"background_job": job, "event": "job.note"}, pluck="message")
	assert notes == ["GET https://example.com/?token=***&page=2"]
