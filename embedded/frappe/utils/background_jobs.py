"""Background jobs on RQ: enqueueing, running one job, workers."""

import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import frappe
import redis
from frappe import _
from frappe.utils import CallbackManager, cint, get_bench_id, get_sites
from rq import Callback, Queue, Worker
from rq.exceptions import NoSuchJobError
from rq.job import Job, JobStatus

# in the order in which a worker without `--queue` serves them
TIMEOUTS = {"short": 300, "default": 300, "long": 1500}
WEEK = 7 * 24 * 60 * 60


def enqueue(
	method: str | Callable,
	queue: str = "default",
	timeout: int | None = None,
	event: str | None = None,
	is_async: bool = True,
	job_name: str | None = None,
	now: bool = False,
	enqueue_after_commit: bool = False,
	*,
	on_success: Callable | None = None,
	on_failure: Callable | None = None,
	at_front: bool = False,
	job_id: str | None = None,
	deduplicate: bool = False,
	**kwargs: Any,
) -> Job | Any:
	if deduplicate and _is_waiting_or_forget(job_id):
		return None
	if now or not is_async:
		return frappe.call(method, **kwargs)
	rq_queue = get_queue(queue)
	if rq_queue.count >= (cint(frappe.conf.max_queued_jobs) or 500 + 50 * len(get_sites())):
		frappe.throw(_("Too many jobs wait already in {0}").format(queue), frappe.QueueOverloaded)
	job = {"site": frappe.local.site, "user": frappe.session.user, "method": method, "event": event}
	job |= {"job_name": job_name or _name(method), "is_async": True, "kwargs": kwargs}
	options = {"timeout": timeout or TIMEOUTS[queue], "at_front": at_front, "kwargs": job}
	options |= {"job_id": create_job_id(job_id), "on_success": on_success and Callback(on_success)}
	options |= {"on_failure": on_failure and Callback(on_failure), "failure_ttl": WEEK, "result_ttl": 600}
	if enqueue_after_commit:
		return frappe.db.after_commit.add(lambda: rq_queue.enqueue_call(execute_job, **options))
	return rq_queue.enqueue_call(execute_job, **options)


def execute_job(
	site: str, method: Any, event: Any, job_name: str, kwargs: dict, user: Any = None, is_async: bool = True
) -> Any:
	"""One job in one transaction: committed when it returns, rolled back and logged when it raises."""
	if is_async:
		frappe.init(site)
		frappe.connect()
		frappe.set_user(user or "Administrator")
	name, result = _name(method), None
	function = frappe.get_attr(method) if isinstance(method, str) else method
	frappe.local.job = job = frappe._dict(site=site, method=name, job_name=job_name, kwargs=kwargs, user=user)
	job.after_job = CallbackManager()
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
		job.after_job.run()
		if is_async:
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
	return [generate_qname(name) for name in names] if build_queue_name else names


def get_queue(qtype: str) -> Queue:
	return Queue(*get_queue_list(qtype, build_queue_name=True), connection=get_redis_conn())


def generate_qname(qtype: str) -> str:
	return f"{get_bench_id()}:{qtype}"


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


def _name(method: str | Callable) -> str:
	return method if isinstance(method, str) else f"{method.__module__}.{method.__qualname__}"
