"""Background jobs on RQ: enqueueing, running one job, workers."""

import os
import re
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from uuid import uuid4

import frappe
import redis
from frappe import _
from frappe.utils import CallbackManager, cint, get_bench_id, get_sites
from rq import Callback, Queue, Worker
from rq.exceptions import NoSuchJobError
from rq.job import Job, JobStatus
from rq.worker import DequeueStrategy

RQ_JOB_FAILURE_TTL = 7 * 24 * 60 * 60
RQ_FAILED_JOBS_LIMIT = 1000
RQ_RESULTS_TTL = 10 * 60
MAX_RETRIES = 5


@lru_cache
def get_queues_timeout() -> dict[str, int]:
	"""Queues in the order in which a worker without `--queue` serves them."""
	custom = frappe.get_conf().get("workers") or {}
	return {"short": 300, "default": 300, "long": 1500} | {
		name: config.get("timeout", 300) for name, config in custom.items()
	}


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
	if now or not (is_async or frappe.flags.in_test):
		return frappe.call(method, **kwargs)
	q = get_queue(queue, is_async=is_async)
	_check_queue_size(q)
	arguments = {"site": frappe.local.site, "user": frappe.session.user, "method": method, "event": event}
	arguments |= {"job_name": job_name or _method_name(method), "is_async": is_async, "kwargs": kwargs}
	options = {"timeout": timeout or get_queues_timeout()[queue], "at_front": at_front}
	options |= {"job_id": create_job_id(job_id), "kwargs": arguments, **_lifetimes()}
	options |= {"on_success": Callback(on_success) if on_success else None}
	options |= {"on_failure": Callback(on_failure or truncate_failed_registry)}
	if enqueue_after_commit:
		frappe.db.after_commit.add(lambda: q.enqueue_call(execute_job, **options))
		return None
	return q.enqueue_call(execute_job, **options)


def enqueue_doc(
	doctype: str,
	name: str | None = None,
	method: str | None = None,
	queue: str = "default",
	timeout: int = 300,
	now: bool = False,
	**kwargs: Any,
) -> Job | Any:
	kwargs |= {"doctype": doctype, "name": name, "doc_method": method}
	return enqueue(run_doc_method, queue=queue, timeout=timeout, now=now, **kwargs)


def run_doc_method(doctype: str, name: str, doc_method: str, **kwargs: Any) -> None:
	getattr(frappe.get_doc(doctype, name), doc_method)(**kwargs)


def execute_job(
	site: str,
	method: str | Callable,
	event: str | None,
	job_name: str,
	kwargs: dict,
	user: str | None = None,
	is_async: bool = True,
	retry: int = 0,
) -> Any:
	"""One job in one transaction: committed when it returns, rolled back and logged when it raises."""
	if is_async:
		_enter(site, user)
	name, result = _method_name(method), None
	method = frappe.get_attr(method) if isinstance(method, str) else method
	frappe.local.job = frappe._dict(site=site, method=name, job_name=job_name, kwargs=kwargs, user=user)
	frappe.local.job.after_job = after_job = CallbackManager()
	for hook in frappe.get_hooks("before_job"):
		frappe.call(hook, method=name, kwargs=kwargs, transaction_type="job")
	try:
		result = method(**kwargs)
		frappe.db.commit()
		return result
	except frappe.RetryBackgroundJobError:
		frappe.db.rollback()
		if retry >= MAX_RETRIES:
			_log_failure(name)
			raise
		frappe.destroy()
		time.sleep(retry + 1)
		# Frappe's own retry forgets the user as well.
		return execute_job(site, method, event, job_name, kwargs, is_async=is_async, retry=retry + 1)
	except Exception:
		frappe.db.rollback()
		_log_failure(name)
		print(frappe.get_traceback())
		raise
	finally:
		_leave(site, name, kwargs, result, after_job, is_async)


def _enter(site: str, user: str | None) -> None:
	frappe.init(site)
	frappe.connect()
	if os.environ.get("CI"):
		frappe.flags.in_test = True
	if user:
		frappe.set_user(user)


def _leave(
	site: str, name: str, kwargs: dict, result: Any, after_job: CallbackManager, is_async: bool
) -> None:
	if not getattr(frappe.local, "db", None):
		_enter(site, None)
	for hook in frappe.get_hooks("after_job"):
		frappe.call(hook, method=name, kwargs=kwargs, result=result)
	after_job.run()
	if is_async:
		frappe.destroy()


def _log_failure(title: str) -> None:
	frappe.log_error(title=title)
	frappe.db.commit()


def start_worker(
	queue: str | None = None,
	quiet: bool = False,
	burst: bool = False,
	strategy: DequeueStrategy | None = None,
) -> None:
	"""An RQ worker that forks for each job; nothing that belongs to a site is open before the fork."""
	frappe.init("")
	wanted = [name.strip() for name in queue.split(",")] if queue else None
	queues = get_queue_list(wanted, build_queue_name=True)
	connection, niceness = get_redis_conn(), frappe.conf.get("background_process_niceness")
	os.nice(10 if niceness is None else cint(niceness))
	frappe.destroy()
	worker = Worker(queues, connection=connection)
	level = "WARNING" if quiet else "INFO"
	worker.work(burst=burst, logging_level=level, dequeue_strategy=strategy or DequeueStrategy.DEFAULT)


def get_queue_list(queue_list: str | list[str] | None = None, build_queue_name: bool = False) -> list[str]:
	names = [queue_list] if isinstance(queue_list, str) else queue_list or list(get_queues_timeout())
	for name in names:
		validate_queue(name)
	return [generate_qname(name) for name in names] if build_queue_name else names


def get_queue(qtype: str, is_async: bool = True) -> Queue:
	validate_queue(qtype)
	return Queue(generate_qname(qtype), connection=get_redis_conn(), is_async=is_async)


def validate_queue(queue: str, default_queue_list: list[str] | None = None) -> None:
	known = default_queue_list or list(get_queues_timeout())
	if queue not in known:
		frappe.throw(_("There is no queue {0}; there are: {1}").format(queue, ", ".join(known)))


def get_queues(connection: redis.Redis | None = None) -> list[Queue]:
	names = [generate_qname(name) for name in get_queues_timeout()]
	return [queue for queue in Queue.all(connection=connection or get_redis_conn()) if queue.name in names]


def get_workers(queue: Queue | None = None) -> list[Worker]:
	return Worker.all(queue=queue) if queue else Worker.all(get_redis_conn())


def generate_qname(qtype: str) -> str:
	return f"{get_bench_id()}:{qtype}"


def get_redis_conn(username: str | None = None, password: str | None = None) -> redis.Redis:
	if username or password:
		raise frappe.NotOfferedError("RQ authentication")
	return _connection(frappe.local.conf.redis_queue)


@lru_cache
def _connection(url: str) -> redis.Redis:
	return redis.Redis.from_url(url)


def create_job_id(job_id: str | None = None) -> str:
	"""Frappe v16 writes `site||id`; newer releases of RQ 2 accept only letters, digits, "_" and "-"."""
	return re.sub(r"[^A-Za-z0-9_-]", "-", f"{frappe.local.site}--{job_id or uuid4()}")


def get_job(job_id: str) -> Job | None:
	try:
		return Job.fetch(create_job_id(job_id), connection=get_redis_conn())
	except NoSuchJobError:
		return None


def get_job_status(job_id: str) -> JobStatus | None:
	job = get_job(job_id)
	return job.get_status() if job else None


def is_job_enqueued(job_id: str) -> bool:
	return get_job_status(job_id) in (JobStatus.QUEUED, JobStatus.STARTED)


def truncate_failed_registry(job: Job, connection: redis.Redis, *_error: Any) -> None:
	conf = frappe.get_conf(site=job.kwargs.get("site"))
	keep = (conf.get("rq_failed_jobs_limit") or RQ_FAILED_JOBS_LIMIT) - 1
	for queue in get_queues(connection):
		for job_id in queue.failed_job_registry.get_job_ids()[keep:]:
			queue.failed_job_registry.remove(job_id, delete_job=True)


def _is_waiting_or_forget(job_id: str | None) -> bool:
	if not job_id:
		frappe.throw(_("Deduplication needs a job_id"))
	if is_job_enqueued(job_id):
		return True
	if job := get_job(job_id):
		job.delete()
	return False


def _check_queue_size(queue: Queue) -> None:
	limit = cint(frappe.conf.get("max_queued_jobs")) or 500 + 50 * len(get_sites())
	if queue.count >= limit:
		frappe.throw(_("Too many jobs wait already ({0})").format(queue.count), frappe.QueueOverloaded)


def _lifetimes() -> dict[str, int]:
	conf = frappe.conf
	failure_ttl, result_ttl = conf.get("rq_job_failure_ttl"), conf.get("rq_results_ttl")
	return {"failure_ttl": failure_ttl or RQ_JOB_FAILURE_TTL, "result_ttl": result_ttl or RQ_RESULTS_TTL}


def _method_name(method: str | Callable) -> str:
	return method if isinstance(method, str) else f"{method.__module__}.{method.__qualname__}"
