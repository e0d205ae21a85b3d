"""Job Run: one row per attempt, written when it starts and once more when it ends."""

from datetime import datetime

import frappe

from dartwing_jobs import parameters

RUNNING = "Running"
COMPLETED = "Completed"
FAILED = "Failed"
SKIPPED = "Skipped"
TRACEBACK_LENGTH = 20_000


def begin(job, now: datetime, worker: str) -> str:
	name = frappe.generate_hash(length=20)
	columns = {
		"name": name,
		"owner": job.owner_user,
		"creation": now,
		"modified": now,
		"modified_by": job.owner_user,
		"background_job": job.name,
		"organization": job.organization,
		"status": RUNNING,
		"attempt": job.attempt,
		"started_at": now,
		"worker": worker,
		"job_type": job.job_type,
		"job_template": job.job_template,
		"params_snapshot": parameters.canonical(parameters.load(job.input_parameters), "params"),
	}
	frappe.qb.into("Job Run").columns(*columns).insert(*columns.values()).run()
	return name


def end(name: str, status: str, started: datetime, now: datetime, **columns) -> None:
	run = frappe.qb.DocType("Job Run")
	update = frappe.qb.update(run).where(run.name == name)
	columns |= {
		"status": status,
		"finished_at": now,
		"modified": now,
		"duration_seconds": max(0.0, (now - started).total_seconds()),
	}
	for column, value in columns.items():
		update = update.set(run[column], value)
	update.run()


def error_columns(error: BaseException, error_type: str, traceback: str) -> dict:
	return {
		"error_type": error_type,
		"error_class": f"{type(error).__module__}.{type(error).__qualname__}"[:140],
		"error_message": str(error)[:2000],
		"traceback": traceback[-TRACEBACK_LENGTH:],
	}
