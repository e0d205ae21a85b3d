"""Background jobs on RQ: enqueueing, running one job, workers."""

import os
import re
from collections.abc import Callable
from uuid import uuid4

import frappe
import redis
from frappe import _
from frappe.utils import cint, get_sites
from rq import Queue, Worker
from rq.exceptions import NoSuchJobError
from rq.job import Job, JobStatus

# in the order in which a worker without `--queue` serves them
TIMEOUTS = {"short": 300, "default": 300, "long": 1500}
REFUSED = {"at_front", "event", "is_async", "job_name", "now", "on_success", "on_failure"}
WEEK = 7 * 24 * 60 * 60


def enqueue(
	method: str | Callable,
	queue: str = "default",
	timeout: int | None = None,
	*,
	enqueue_after_commit: bool = False,
	job_id: str | None = None,
	deduplicate: bool = False,
	**kwargs,
):
	if refused := REFUSED.intersection(kwargs):
		raise frappe.NotOfferedError(f"frappe.enqueue with {', '.join(refused)}")
	if deduplicate and _is_waiting_or_forget(job_id):
		return None
	rq_queue = get_queue(queue)
	if rq_queue.count >= (cint(frappe.conf.max_queued_jobs) or 500 + 50 * len(get_sites())):
		frappe.throw(_("Too many jobs wait already in {0}").format(queue), frappe.QueueOverloaded)
	job = {"site": frappe.local.site, "user": frappe.session.user, "method": method, "kwargs": kwargs}
	options = {"timeout": timeout or TIMEOUTS[queue], "kwargs": job}
	options |= {"job_id": create_job_id(job_id), "failure_ttl": WEEK, "result_ttl": 600}
	if enqueue_after_commit:
		return frappe.db.after_commit.add(lambda: rq_queue.enqueue_call(execute_job, **options))
	return rq_queue.enqueue_call(execute_job, **options)


def execute_job(site: str, method: str | Callable, kwargs: dict, user: str | None = None):
	"""One job in one transaction: committed when it returns, rolled back and logged when it raises."""
	frappe.connect(site)
	frappe.set_user(user or "Administrator")
	function = frappe.get_attr(method) if isinstance(method, str) else method
	name, result = f"{function.__module__}.{function.__qualname__}", None
	for hook in frappe.get_hooks("before_job"):
		frappe.call(hook, method=name, kwargs=kwargs, transaction_type="job")
	try:
		result = function(**kwargs)
		frappe.db.commit()
		return result
	except Exception:
		frappe.db.rollback()
		frappe.log_error(title=name)
		frappe.db.commit()
		raise
	finally:
		for hook in frappe.get_hooks("after_job"):
			frappe.call(hook, method=name, kwargs=kwargs, result=result)
		frappe.destroy()


def start_worker(queue: str | None = None, quiet: bool = False, burst: bool = False) -> None:
	"""An RQ worker that forks for each job; nothing that belongs to a site is open before the fork."""
	frappe.init("")
	queues = get_queue_list(queue.split(",") if queue else None, build_queue_name=True)
	worker = Worker(queues, connection=get_redis_conn())
	frappe.destroy()
	worker.work(burst=burst, logging_level="WARNING" if quiet else "INFO")


def get_queue_list(queue_list: str | list[str] | None = None, build_queue_name: bool = False) -> list[str]:
	names = [queue_list] if isinstance(queue_list, str) else queue_list or list(TIMEOUTS)
	if unknown := set(names).difference(TIMEOUTS):
		frappe.throw(_("There is no queue {0}").format(", ".join(unknown)))
	bench = os.path.realpath(os.path.join(frappe.local.sites_path, "..")).strip("/").replace("/", "-")
	return [f"{frappe.conf.bench_id or bench}:{name}" for name in names] if build_queue_name else names


def get_queue(qtype: str) -> Queue:
	return Queue(*get_queue_list(qtype, build_queue_name=True), connection=get_redis_conn())


def get_redis_conn() -> redis.Redis:
	return redis.Redis.from_url(frappe.local.conf.redis_queue)


def create_job_id(job_id: str | None = None) -> str:
	"""Frappe v16 writes `site||id`; newer releases of RQ 2 accept only letters, digits, "_" and "-"."""
	return re.sub(r"[^A-Za-z0-9_-]", "-", f"{frappe.local.site}--{job_id or uuid4()}")


def get_job(job_id: str) -> Job | None:
	try:
		return Job.fetch(create_job_id(job_id), connection=get_redis_conn())
	except NoSuchJobError:
		return None


def is_job_enqueued(job_id: str) -> bool:
	job = get_job(job_id)
	return bool(job) and job.get_status() in (JobStatus.QUEUED, JobStatus.STARTED)


def _is_waiting_or_forget(job_id: str | None) -> bool:
	if not job_id:
		frappe.throw(_("Deduplication needs a job_id"))
	waits = is_job_enqueued(job_id)
	if not waits and (job := get_job(job_id)):
		job.delete()
	return waits
