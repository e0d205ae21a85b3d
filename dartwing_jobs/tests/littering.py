"""A handler that leaves its traces everywhere, one that looks for them, and hooks that count jobs."""

from collections import defaultdict

import frappe

from dartwing_jobs import PermanentError, job_handler

hooked = []


@job_handler
def litter(parameters: dict, context) -> None:
	local = frappe.local
	local.litter = local.flags.in_import = True
	local.request_cache = defaultdict(dict)
	# everything that Frappe keeps per request: flags, caches, form, session, configuration
	for _name, value in list(local):
		if isinstance(value, dict):
			value["litter"] = {}
	frappe.msgprint("litter", alert=True)
	frappe.db.value_cache["litter"] = {"litter": 1}
	frappe.db.set_value("Job Type", context.job_type, "description", "litter")
	local.lang = "de"
	frappe.db.after_commit.add(lambda: hooked.append("after commit"))
	frappe.db.after_rollback.add(lambda: hooked.append("after rollback"))
	frappe.set_user("Guest")
	if parameters.get("fail"):
		raise PermanentError("litter")


@job_handler
def look_around(parameters: dict, context) -> dict:
	local = frappe.local
	found = {
		"kept": sorted(name for name, value in local if isinstance(value, dict) and "litter" in value),
		"flags": [hasattr(local, "litter"), bool(local.flags.in_import)],
		"messages": len(local.message_log),
		"value cache": "litter" in frappe.db.value_cache,
		"language": getattr(local, "lang", None),
		"user": frappe.session.user,
		"callbacks": list(hooked),
		"writes": frappe.db.transaction_writes,
	}
	hooked.clear()
	return found


def before_job(method: str, kwargs: dict, transaction_type: str) -> None:
	hooked.append(["before", method.rpartition(".")[2], kwargs, transaction_type])


def after_job(method: str, result=None, **_given) -> None:
	hooked.append(["after", method.rpartition(".")[2], result is not None])
