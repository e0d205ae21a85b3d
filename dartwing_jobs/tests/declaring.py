"""Handlers that declare their job types, as another app would list them in its hook."""

from dartwing_jobs import job_handler
from dartwing_jobs.samples import execute_sample_job  # noqa: F401  # what is only imported declares nothing here
from dartwing_jobs.tests import more_declaring

SCHEMA = {"type": "object", "properties": {"invoice": {"type": "string"}}, "required": ["invoice"]}


@job_handler(
	job_type="test_send_invoice",
	display_name="Send Invoice",
	description="Sends an invoice by mail.",
	category="Notification",
	job_queue="q:exports",
	priority=10,
	timeout=77,
	requires_permission="User:read",
	retry_mode="New Job",
	isolation="Process",
	deduplication_window=9,
	retention_days=3,
	schema=SCHEMA,
)
def send_invoice(parameters: dict, context) -> None:
	pass


@job_handler(job_type="test_plain")
def plain(parameters: dict, context) -> None:
	pass


@job_handler
def without_declaration(parameters: dict, context) -> None:
	pass


borrowed = more_declaring.elsewhere
