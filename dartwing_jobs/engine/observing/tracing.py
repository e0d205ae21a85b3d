"""Traces: spans for submits and attempts, where OpenTelemetry is set up. Elsewhere nothing is imported.

Who keeps the spans, and where they are sent, is the operator's choice: this only says what happened. None is
made while nobody keeps any.
"""

import traceback
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from types import SimpleNamespace

from dartwing_jobs.engine import runs, sanitize

# what a worker that leaves may spend on sending what it has seen
FLUSH_MILLISECONDS = 2000
# an attribute of a span: the job's field
ATTRIBUTES = {
	"job.name": "name",
	"job.id": "job_id",
	"job.type": "job_type",
	"job.queue": "job_queue",
	"job.attempt": "attempt",
	"org_id": "organization",
	"project_id": "project_id",
	"request_id": "request_id",
	"correlation_id": "correlation_id",
}


def submitting(job_type: str, traceparent: str | None) -> AbstractContextManager:
	"""The span of a submit, inside the span that is current, or else inside the one that is named."""
	if not (otel := _otel()):
		return nullcontext()
	is_inside = otel.trace.get_current_span().get_span_context().is_valid
	parent = None if is_inside else _context(otel, traceparent)
	return otel.tracer().start_as_current_span(
		"job.submit", parent, otel.trace.SpanKind.PRODUCER, {"job.type": job_type}
	)


def describe(job) -> None:
	"""Gives the current span the ids of a job."""
	if otel := _otel():
		otel.trace.get_current_span().set_attributes(_attributes(job))


def current_traceparent() -> str | None:
	"""The current span, for a job that is submitted in it; None when there is none."""
	# a span may have come from elsewhere, although nobody keeps any here
	otel = _installed()
	if not (otel and otel.trace.get_current_span().get_span_context().is_valid):
		return None
	carrier: dict[str, str] = {}
	otel.propagator.inject(carrier)
	return carrier.get("traceparent")


def running(job) -> AbstractContextManager:
	"""The span of an attempt, a child of the job's traceparent."""
	otel = _otel()
	return _span_of_attempt(otel, job) if otel else nullcontext()


def flush() -> None:
	"""A worker's process ends without a word: what waits to be sent must be sent before."""
	if otel := _otel():
		send = getattr(otel.trace.get_tracer_provider(), "force_flush", None)
		if send:
			send(FLUSH_MILLISECONDS)


@contextmanager
def _span_of_attempt(otel: SimpleNamespace, job) -> Iterator[None]:
	with otel.tracer().start_as_current_span(
		f"job.run {job.job_type}",
		_context(otel, job.traceparent),
		otel.trace.SpanKind.CONSUMER,
		_attributes(job),
		record_exception=False,
		set_status_on_exception=False,
	) as span:
		try:
			yield
		except BaseException as error:  # a timeout is no Exception
			span.record_exception(error, _without_secrets(error))
			span.set_status(otel.trace.Status(otel.trace.StatusCode.ERROR, type(error).__name__))
			raise


def _otel() -> SimpleNamespace | None:
	"""What is used of OpenTelemetry; None where nobody has said who keeps spans."""
	otel = _installed()
	if otel and isinstance(otel.trace.get_tracer_provider(), otel.trace.ProxyTracerProvider):
		return None
	return otel


@lru_cache
def _installed() -> SimpleNamespace | None:
	"""None where it is not."""
	try:
		from opentelemetry import trace
		from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
	except ImportError:
		return None
	return SimpleNamespace(
		trace=trace,
		propagator=TraceContextTextMapPropagator(),
		# asked for each time: a provider may be set at any time
		tracer=lambda: trace.get_tracer("dartwing_jobs"),
	)


def _context(otel: SimpleNamespace, traceparent: str | None):
	return otel.propagator.extract({"traceparent": traceparent} if traceparent else {})


def _without_secrets(error: BaseException) -> dict:
	stack = sanitize.text("".join(traceback.format_exception(error)))
	return {"exception.message": runs.message_of(error), "exception.stacktrace": stack}


def _attributes(job) -> dict:
	return {name: value for name, field in ATTRIBUTES.items() if (value := job.get(field)) is not None}
