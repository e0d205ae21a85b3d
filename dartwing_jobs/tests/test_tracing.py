"""Traces: a submit and each attempt are spans of one trace, where OpenTelemetry is installed."""

import subprocess
import sys

import frappe
import pytest

from dartwing_jobs import TransientError, job_handler, submit
from dartwing_jobs.engine.observing import tracing
from dartwing_jobs.testing import run_job
from dartwing_jobs.tests.processes import in_other_processes
from dartwing_jobs.tests.world import make_job_type, make_queue

GIVEN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
# as where it was never installed
WITHOUT = """
import sys

class Missing:
	def find_spec(self, name, path=None, target=None):
		if name.split(".")[0] == "opentelemetry":
			raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import dartwing_jobs.engine.drain
from dartwing_jobs.engine.observing import tracing
with tracing.submitting("a", None), tracing.running({"job_type": "a"}):
	assert tracing.current_traceparent() is None
tracing.flush()
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""


@job_handler
def fail_once_with_a_secret(parameters: dict, context) -> None:
	if context.attempt == 1:
		raise TransientError("refused password=hunter2")
	context.submit("sample_job", {"from": "the handler"})


@pytest.fixture
def traced(world):
	"""A type that fails once, an organization and a queue, committed: other processes must see them."""
	job_type = make_job_type(handler_method=f"{__name__}.fail_once_with_a_secret").name
	queue = make_queue()
	frappe.db.commit()
	return job_type, world.a, queue


def in_a_traced_process(function, *arguments):
	"""In a process of its own: a provider of spans is set once and for all."""
	(result,) = in_other_processes(function, arguments)
	return result


def _keep_spans():
	from opentelemetry import trace
	from opentelemetry.sdk.trace import TracerProvider
	from opentelemetry.sdk.trace.export import SimpleSpanProcessor
	from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

	provider, spans = TracerProvider(), InMemorySpanExporter()
	provider.add_span_processor(SimpleSpanProcessor(spans))
	trace.set_tracer_provider(provider)
	return trace.get_tracer("test"), spans


def _told(span) -> dict:
	return {
		"name": span.name,
		"kind": span.kind.name,
		"trace": span.context.trace_id,
		"id": span.context.span_id,
		"parent": span.parent.span_id if span.parent else None,
		"attributes": dict(span.attributes),
		"status": span.status.status_code.name,
		"events": [dict(event.attributes) for event in span.events],
	}


def _submit_and_run_twice(job_type: str, organization: str, queue: str) -> tuple[str, str, list[dict]]:
	tracer, spans = _keep_spans()
	with tracer.start_as_current_span("request"):
		job = submit(job_type, None, organization, job_queue=queue, request_id="R-1")
	frappe.db.commit()
	run_job(job.name)
	run_job(job.name)
	child = frappe.get_last_doc("Background Job", {"job_type": "sample_job", "organization": organization})
	return job.name, child.traceparent, [_told(span) for span in spans.get_finished_spans()]


def test_submit_and_attempts_are_one_trace(traced):
	job_name, childs_traceparent, spans = in_a_traced_process(_submit_and_run_twice, *traced)
	first, request, again, inner, second = spans
	assert [first["name"], request["name"]] == ["job.submit", "request"]
	assert len({span["trace"] for span in spans}) == 1
	assert (first["parent"], first["kind"]) == (request["id"], "PRODUCER")
	assert [again["name"], second["name"]] == [f"job.run {traced[0]}"] * 2
	assert {again["parent"], second["parent"]} == {first["id"]}
	assert (again["kind"], again["status"], second["status"]) == ("CONSUMER", "ERROR", "UNSET")
	assert again["attributes"]["job.name"] == second["attributes"]["job.name"] == job_name
	assert (second["attributes"]["job.attempt"], second["attributes"]["org_id"]) == (2, traced[1])
	assert second["attributes"]["request_id"] == "R-1"
	assert inner["parent"] == second["id"]
	assert childs_traceparent.split("-")[2] == f"{inner['id']:016x}"


def test_an_error_is_recorded_without_its_secrets(traced):
	_job, _child, spans = in_a_traced_process(_submit_and_run_twice, *traced)
	(told,) = spans[2]["events"]
	assert told["exception.type"].endswith("TransientError")
	assert told["exception.message"] == "refused password=***"
	assert "hunter2" not in str(spans)


def _submit_with(job_type: str, organization: str, queue: str) -> tuple[str, list[dict]]:
	_tracer, spans = _keep_spans()
	job = submit(job_type, None, organization, job_queue=queue, traceparent=GIVEN)
	frappe.db.commit()
	run_job(job.name)
	return job.traceparent, [_told(span) for span in spans.get_finished_spans()]


def test_a_traceparent_that_is_given_stays(traced):
	traceparent, spans = in_a_traced_process(_submit_with, *traced)
	assert traceparent == GIVEN
	assert {f"{span['trace']:032x}" for span in spans} == {GIVEN.split("-")[1]}
	assert {f"{span['parent']:016x}" for span in spans} == {GIVEN.split("-")[2]}


def test_where_nobody_keeps_spans_jobs_have_no_traceparent(traced):
	job_type, organization, queue = traced
	job = submit(job_type, None, organization, job_queue=queue)
	assert tracing.current_traceparent() is None
	assert job.traceparent is None


def test_without_opentelemetry_nothing_of_it_is_imported():
	done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
	assert done.stdout.strip() == "[]", done.stderr
