"""What our own system runs beside the samples of the product."""

import frappe

from benchmarks.systems.plain_table import INSERT
from dartwing_jobs import job_handler


@job_handler
def insert_row(parameters: dict, context) -> None:
	"""Its commit is that of the job's end, as for any handler that does not commit by itself."""
	frappe.db.sql(INSERT, (parameters["number"],))
