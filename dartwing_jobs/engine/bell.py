"""The doorbell: tells workers that something is due. A lost ring loses nothing, sweeps ring again.

A ring reaches a drain that lingers (it waits at a list in Redis), or sends a message through RQ, of which one
at a time is on its way. Nothing here is the truth: all of it may be wiped at any moment.
"""

import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import lru_cache

import frappe
import redis
from frappe.utils.background_jobs import create_job_id, get_queue, get_queue_list
from rq import Queue
from rq.job import Job
from rq.worker_registration import WORKERS_BY_QUEUE_KEY

from dartwing_jobs import clock
from dartwing_jobs.engine import database, redis_client
from dartwing_jobs.engine.observing import reports
from dartwing_jobs.engine.rules import routes

DRAIN = "dartwing_jobs.engine.drain.answer"
# a ring that nobody answered may be repeated after this
RING_SECONDS = 5
# a drain that lingers says so more often than this; while it does, a ring needs no message
AWAKE_SECONDS = 1
# what RQ reads as "as long as it takes": each job has a deadline of its own, however late that may be
NO_LIMIT = -1
# ringing never slows the caller
TIMEOUT_SECONDS = 0.1
# what falls due within this is waited for by a lingering drain; longer than any scheduler's tick
HORIZON_SECONDS = 300
# drains that fail within this belong to one row of failures; how long the next one is waited with at most
FAILURES_SECONDS, MOST_AFTER_FAILURE_SECONDS = 120, 30
# how long it is known when a site was swept last
SWEPT_SECONDS = 3600
# how far back in a queue to look for messages of our own
LOOK_BACK = 200
# two kinds of messages: work is there, or a drain that had to leave wants to go on waiting for what falls due
WORK, WAKE = "dartwing-work", "dartwing-wake"
# RQ's own names begin so too: where Redis users are restricted to RQ's keys, ours are among them
PREFIX = "rq:dartwing"

# in one step, so that a drain cannot fall asleep in the middle of it
RING = """
local awake = redis.call('exists', KEYS[1])
redis.call('rpush', KEYS[2], 1)
redis.call('ltrim', KEYS[2], -2, -1)
redis.call('expire', KEYS[2], ARGV[1])
if awake == 0 and redis.call('set', KEYS[3], 1, 'NX', 'EX', ARGV[1]) then return 1 end
return 0
"""


def ring_after_commit(job_queue: str) -> None:
	"""Once per transaction and RQ queue, however many jobs it submits; not at all when it is rolled back."""
	rings = _rings_of_this_transaction()
	if not rings:
		db = frappe.local.db
		database.add_after_commit(rings.ring)
		db.after_rollback.add(rings.clear)
	rings.add(routes.rq_queue_of(job_queue))


def ring_when_due_after_commit(job_queue: str, due: datetime) -> None:
	"""For work that waits for a moment (UTC): if that comes soon, a worker is to wait for it."""
	if (due - clock.last_known_utc()).total_seconds() < HORIZON_SECONDS:
		ring_after_commit(job_queue)


def ring(rq_queue: str) -> bool:
	"""Wakes a worker: one that lingers, or by a message, unless one is on its way already. Never raises."""
	try:
		if _needs_message(rq_queue):
			_send(WORK, rq_queue)
	except Exception as error:  # Redis may be down: the job is committed, and the next sweep rings again
		reports.to_log(f"Could not ring for {rq_queue}", error, logging.WARNING)
		return False
	return True


def send_wake(rq_queue: str, served: list[str] | None = None) -> None:
	"""For a drain that leaves although something falls due soon: to come back behind those who wait.

	A worker takes from its queues in order. In front of another queue, it would come back before them, again
	and again; and whoever lingers, at whichever queue, rings for all others.
	"""
	try:
		waiting = messages_in(served or [])
		last = next((name for name in reversed(served or []) if waiting[name]), rq_name(rq_queue))
		_send(WAKE, last.removeprefix(f"{_bench()}:"))
	except Exception as error:  # as above
		reports.to_log(f"Could not come back to {rq_queue}", error, logging.WARNING)


def answered(rq_queue: str) -> None:
	"""A drain has started: it answers every ring so far, and from here on another message may be sent."""
	with _forgiving():
		client().delete(*_keys(rq_queue, WORK, "bell"))


def listen(rq_queue: str, seconds: float) -> bool:
	"""Waits at the bell: True when somebody rang."""
	try:
		client().set(_key("awake", rq_queue), 1, px=int(AWAKE_SECONDS * 1000))
		return client().blpop([_key("bell", rq_queue)], timeout=seconds) is not None
	except redis.RedisError:
		time.sleep(seconds)
		return False


def stop_listening(rq_queue: str) -> None:
	"""A drain that lingered has found work: who rings from here on must not rely on it."""
	with _forgiving():
		client().delete(_key("awake", rq_queue))


def fall_asleep(rq_queue: str) -> bool:
	"""Leaves the bell; True when somebody rang in the meantime: then it is not time to leave."""
	with _forgiving(), client().pipeline() as pipe:
		pipe.delete(_key("awake", rq_queue)).lpop(_key("bell", rq_queue))
		return pipe.execute()[1] is not None
	return False


def note_due(rq_queue: str, due: datetime | None, in_vain: float | None = None) -> None:
	"""Tells the whole bench when something of this site falls due next (UTC); None: nothing does.

	What was due already when a drain tried `in_vain`, so many seconds ago, is held by somebody: it is left
	alone for a while, or a worker would be sent from queue to queue for it without a pause.
	"""
	with _forgiving():
		if due:
			moment = due.replace(tzinfo=timezone.utc).timestamp()
			if in_vain is not None and moment < _timestamp() - in_vain:
				moment = _timestamp() + RING_SECONDS
			client().zadd(_due(), {_member(rq_queue): moment})
		else:
			client().zrem(_due(), _member(rq_queue))


def seconds_until_something_is_due() -> float | None:
	"""Of any site of this bench; None when nothing is, as far as anybody has said."""
	with _forgiving():
		first = client().zrange(_due(), 0, 0, withscores=True)
		return first[0][1] - _timestamp() if first else None
	return None


def is_something_due_soon() -> bool:
	seconds = seconds_until_something_is_due()
	return seconds is not None and seconds < HORIZON_SECONDS


def seconds_after_failure(rq_queue: str) -> float:
	"""How long to wait before ringing in place of a drain that failed: twice as long each time in a row."""
	with _forgiving(), client().pipeline() as pipe:
		key = _key("failed", rq_queue)
		failures = pipe.incr(key).expire(key, FAILURES_SECONDS).execute()[0]
		return min(2 ** (failures - 1), MOST_AFTER_FAILURE_SECONDS)
	return MOST_AFTER_FAILURE_SECONDS


def note_sweep(seconds: float = 0) -> None:
	"""This site was swept just now; or is not to be swept for so many seconds."""
	with _forgiving():
		client().set(_swept(), 1, px=int((SWEPT_SECONDS + seconds) * 1000))


def seconds_since_sweep() -> float | None:
	"""By the clock of Redis. None when nothing is known; less than 0 for one that can wait."""
	with _forgiving():
		left = client().pttl(_swept())
		return SWEPT_SECONDS - left / 1000 if left >= 0 else None
	return 0


def leave_to_others(rq_queue: str) -> None:
	"""For a site that went offline: it waits for nothing. One message is sent for all sites, and it may have
	been this one's: then the site whose moment comes first is to wait."""
	with _forgiving():
		sites = {member: _site_of(member) for member in client().zrange(_due(), 0, -1)}
		others = [site for site in sites.values() if site != frappe.local.site]
		for member in [member for member, site in sites.items() if site not in others]:
			client().zrem(_due(), member)
		if others and is_something_due_soon():
			with _as_site(others[0]):
				send_wake(rq_queue)


def leave_the_bench() -> None:
	"""For a site that the app is taken from: no ring for it is left, and no message of ours."""
	with _forgiving():
		for rq_queue in get_queue_list():
			client().delete(*_keys(rq_queue, "awake", "bell", "failed", WORK))
			for message in _messages_of_this_app(get_queue(rq_queue)):
				message.delete()
		client().delete(_swept())
		leave_to_others(get_queue_list()[0])


def ring_for_others(own_rq_queue: str) -> None:
	"""Rings for every other queue of any site of this bench whose moment has come, once."""
	with _forgiving():
		for member in client().zrangebyscore(_due(), "-inf", _timestamp()):
			rq_queue = member.decode().rpartition("|")[2]
			if member.decode() != _member(own_rq_queue) and client().zrem(_due(), member):
				with _as_site(_site_of(member)):
					ring(rq_queue)


def messages_in(rq_names: list[str]) -> dict[str, list[bytes]]:
	"""The first messages that wait in each of these RQ queues; not those that only wish to linger."""
	with client().pipeline(transaction=False) as pipe:
		for name in rq_names:
			pipe.lrange(f"rq:queue:{name}", 0, 9)
		found = pipe.execute()
	return {
		name: [job_id for job_id in job_ids if not _is_wake(job_id)]
		for name, job_ids in zip(rq_names, found, strict=True)
	}


def is_own(job_id: bytes) -> bool:
	"""Whether a message tells of work of this site."""
	return job_id.decode().startswith(create_job_id(WORK))


def served_by(worker: str | None, rq_queue: str) -> list[str]:
	"""The RQ queues that a worker takes messages from, in its order; this one, if it does not tell."""
	with _forgiving():
		if worker and (names := client().hget(worker, "queues")):
			return names.decode().split(",")
	return [rq_name(rq_queue)]


def workers_of(rq_queue: str) -> int:
	"""How many workers take messages from an RQ queue; at least one."""
	with _forgiving():
		return max(1, client().scard(WORKERS_BY_QUEUE_KEY % rq_name(rq_queue)))
	return 1


def rq_name(rq_queue: str) -> str:
	"""As RQ calls it."""
	return f"{_bench()}:{rq_queue}"


def client() -> redis.Redis:
	"""A connection of our own to the bench's queue Redis, which gives up soon."""
	conf = frappe.local.conf
	user = (conf.rq_username or frappe.utils.get_bench_id()) if conf.use_rq_auth else None
	return _client(conf.redis_queue, user, conf.rq_password if conf.use_rq_auth else None)


@lru_cache
def _client(url: str, username: str | None, password: str | None) -> redis.Redis:
	limits = {"socket_timeout": TIMEOUT_SECONDS * 3, "socket_connect_timeout": TIMEOUT_SECONDS}
	return redis_client.make(url, username=username, password=password, **limits)


def _needs_message(rq_queue: str) -> bool:
	"""Wakes who lingers; True when nobody does, and no message was sent within the last seconds."""
	keys = _keys(rq_queue, "awake", "bell", WORK)
	return bool(client().eval(RING, len(keys), *keys, RING_SECONDS))


def _send(kind: str, rq_queue: str) -> None:
	"""Sends a message, unless one of its kind still waits."""
	waiting = client().lrange(get_queue(rq_queue).key, -LOOK_BACK, -1)
	# one wish to linger will do for all sites: whoever lingers rings for the others
	if not any(map(_is_wake if kind == WAKE else is_own, waiting)):
		job_id = f"{kind}-{uuid.uuid4().hex}"
		frappe.enqueue(DRAIN, queue=rq_queue, rq_queue=rq_queue, timeout=NO_LIMIT, job_id=job_id)


def _messages_of_this_app(queue: Queue) -> Iterator[Job]:
	"""Those of this site that name a function of ours; also those by which Frappe's scheduler calls one."""
	of_this_site = create_job_id("id").removesuffix("id")
	for job_id in queue.job_ids:
		message = queue.fetch_job(job_id) if job_id.startswith(of_this_site) else None
		call = message.kwargs if message else {"method": None, "kwargs": {}}
		if _is_of_this_app(call["method"]) or _is_of_this_app(call["kwargs"].get("job_type")):
			yield message


def _is_of_this_app(function: object) -> bool:
	return str(function).startswith(__name__.partition(".")[0] + ".")


def _is_wake(job_id: bytes) -> bool:
	return WAKE in job_id.decode()


class Rings(set):
	"""The RQ queues that are going to be rung for after a commit."""

	def ring(self) -> None:
		"""For each of them, until one cannot be rung for: the caller waits long enough."""
		rq_queues = sorted(self)
		self.clear()
		for rq_queue in rq_queues:
			if not ring(rq_queue):
				return


def _rings_of_this_transaction() -> Rings:
	"""Kept with the connection, whose callbacks ring. New ones, if it has forgotten the callback."""
	db = frappe.local.db
	rings = getattr(db, "dartwing_rings", None)
	if rings is None or (rings and not database.waits_for_commit(rings.ring)):
		rings = db.dartwing_rings = Rings()
	return rings


@contextmanager
def _as_site(site: str) -> Iterator[None]:
	"""Messages name the site that they are for."""
	own = frappe.local.site
	frappe.local.site = site
	try:
		yield
	finally:
		frappe.local.site = own


@contextmanager
def _forgiving() -> Iterator[None]:
	try:
		yield
	except redis.RedisError as error:
		reports.to_log("Redis does not answer", error, logging.WARNING)


def _timestamp() -> float:
	"""Seconds since 1970, by the clock that all workers share."""
	return clock.microseconds() / 1_000_000


def _swept() -> str:
	return f"{PREFIX}:swept:{_bench()}:{frappe.local.site}"


def _due() -> str:
	"""Where the sites of a bench tell each other when something of theirs falls due."""
	return f"{PREFIX}:due:{_bench()}"


def _bench() -> str:
	"""What RQ's names of this bench's queues begin with: benches may share a Redis."""
	return _bench_of(frappe.conf.bench_id)


@lru_cache
def _bench_of(bench_id: str | None) -> str:
	return get_queue_list(["short"], build_queue_name=True)[0].removesuffix(":short")


def _member(rq_queue: str) -> str:
	return f"{frappe.local.site}|{rq_queue}"


def _site_of(member: bytes) -> str:
	return member.decode().rpartition("|")[0]


def _key(kind: str, rq_queue: str) -> str:
	return _keys(rq_queue, kind)[0]


def _keys(rq_queue: str, *kinds: str) -> list[str]:
	place = f"{_bench()}:{frappe.local.site}:{rq_queue}"
	return [f"{PREFIX}:{kind}:{place}" for kind in kinds]
