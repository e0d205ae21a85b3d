"""What another app hooks to Background Job, for tests."""

import frappe

heard = []


def on_change(job, _event=None) -> None:
	before = job.get_doc_before_save()
	heard.append((job.name, before and before.status, job.status))


def after_insert(job, _event=None) -> None:
	heard.append((job.name, "new", job.status))


def write_and_fail(job, _event=None) -> None:
	frappe.db.set_value("Job Type", job.job_type, "description", "written by a listener")
	raise frappe.ValidationError("This listener always fails")
