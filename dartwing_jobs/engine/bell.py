"""The doorbell: tells workers that something is due. A lost ring loses nothing, sweeps ring again.

A ring reaches a drain that lingers (it waits at a list in Redis), or sends a message through RQ, of which one
at a time is on its way. Nothing here is the truth: all of it may be wiped at any moment.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import lru_cache

import frappe
import redis
from frappe.utils.background_jobs import create_job_id, get_queue

from dartwing_jobs.engine.rules import routes

DRAIN = "dartwing_jobs.engine.drain.answer"
# a ring that nobody answered may be repeated after this
RING_SECONDS = 5
# a drain that lingers says so more often than this; while it does, a ring needs no message
AWAKE_SECONDS = 1
# no job is ended by RQ: the engine's own deadlines end them long before
MESSAGE_SECONDS = 24 * 3600
# ringing never slows the caller
TIMEOUT_SECONDS = 0.1
# what falls due within this is waited for by a lingering drain; longer than any scheduler's tick
HORIZON_SECONDS = 300
# how far back in a queue to look for messages of our own
LOOK_BACK = 200
# two kinds of messages: work is there, or a drain that had to leave wants to go on waiting for what falls due
WORK, WAKE = "dartwing-work", "dartwing-wake"
# RQ's own names begin so too: where Redis users are restricted to RQ's keys, ours are among them
PREFIX = "rq:dartwing"
DUE = f"{PREFIX}:due"

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
		frappe.db.after_commit.add(lambda: _ring_each(rings))
		frappe.db.after_rollback.add(rings.clear)
	rings.add(routes.rq_queue_of(job_queue))


def ring_when_due_after_commit(job_queue: str, due: datetime) -> None:
	"""For work that waits for a moment (UTC): if that comes soon, a worker is to wait for it."""
	if (due - _utc_now()).total_seconds() < HORIZON_SECONDS:
		ring_after_commit(job_queue)


def ring(rq_queue: str) -> bool:
	"""Wakes a worker: one that lingers, or by a message, unless one is on its way already. Never raises."""
	try:
		if _needs_message(rq_queue):
			_send(WORK, rq_queue)
	except Exception:  # Redis may be down: the job is committed, and the next sweep rings again
		frappe.logger("dartwing_jobs").warning("Could not ring for %s", rq_queue, exc_info=True)
		return False
	return True


def _ring_each(rings: set[str]) -> None:
	"""Rings for all queues of a transaction, until one cannot be rung for: its caller waits long enough."""
	rq_queues = sorted(rings)
	rings.clear()
	for rq_queue in rq_queues:
		if not ring(rq_queue):
			return


def answered(rq_queue: str) -> None:
	"""A drain has started: it answers every ring so far, and from here on another message may be sent."""
	with _forgiving():
		client().delete(*(_key(kind, rq_queue) for kind in (WORK, WAKE, "bell")))


def listen(rq_queue: str, seconds: float) -> bool:
	"""Waits at the bell: True when somebody rang."""
	try:
		client().set(_key("awake", rq_queue), 1, px=int(AWAKE_SECONDS * 1000))
		return client().blpop([_key("bell", rq_queue)], timeout=seconds) is not None
	except redis.RedisError:
		time.sleep(seconds)
		return False


def fall_asleep(rq_queue: str) -> bool:
	"""Leaves the bell; True when somebody rang in the meantime: then it is not time to leave."""
	with _forgiving(), client().pipeline() as pipe:
		pipe.delete(_key("awake", rq_queue)).lpop(_key("bell", rq_queue))
		return pipe.execute()[1] is not None
	return False


def note_due(rq_queue: str, due: datetime | None) -> None:
	"""Tells the whole bench when something of this site falls due next (UTC); None: nothing does."""
	with _forgiving():
		if due:
			client().zadd(DUE, {_member(rq_queue): due.replace(tzinfo=timezone.utc).timestamp()})
		else:
			client().zrem(DUE, _member(rq_queue))


def seconds_until_something_is_due() -> float | None:
	"""Of any site of this bench; None when nothing is, as far as anybody has said."""
	with _forgiving():
		first = client().zrange(DUE, 0, 0, withscores=True)
		return first[0][1] - time.time() if first else None
	return None


def ring_for_others(own_rq_queue: str) -> None:
	"""Rings for every other queue of any site of this bench whose moment has come, once."""
	with _forgiving():
		for member in client().zrangebyscore(DUE, "-inf", time.time()):
			site, _bar, rq_queue = member.decode().rpartition("|")
			if member.decode() != _member(own_rq_queue) and client().zrem(DUE, member):
				with _as_site(site):
					ring(rq_queue)


def send_wake(rq_queue: str) -> None:
	"""For a drain that leaves although something falls due soon: to come back behind those who wait."""
	with _forgiving():
		if client().set(_key(WAKE, rq_queue), 1, nx=True, ex=RING_SECONDS):
			_send(WAKE, rq_queue)


def foreign_messages(rq_names: list[str]) -> bool:
	"""Whether messages wait in these RQ queues that are not this site's own, nor anybody's wish to linger."""
	own = create_job_id(WORK)
	with client().pipeline(transaction=False) as pipe:
		for name in rq_names:
			pipe.lrange(f"rq:queue:{name}", 0, 9)
		found = [job_id.decode() for job_ids in pipe.execute() for job_id in job_ids]
	return any(not job_id.startswith(own) and WAKE not in job_id for job_id in found)


def client() -> redis.Redis:
	"""A connection of our own to the bench's queue Redis, which gives up soon."""
	conf = frappe.conf
	user = (conf.rq_username or frappe.utils.get_bench_id()) if conf.use_rq_auth else None
	return _client(conf.redis_queue, user, conf.rq_password if conf.use_rq_auth else None)


@lru_cache
def _client(url: str, username: str | None, password: str | None) -> redis.Redis:
	limits = {"socket_timeout": TIMEOUT_SECONDS * 3, "socket_connect_timeout": TIMEOUT_SECONDS}
	return redis.Redis.from_url(url, username=username, password=password, **limits)


def _needs_message(rq_queue: str) -> bool:
	"""Wakes who lingers; True when nobody does, and no message was sent within the last seconds."""
	keys = [_key(kind, rq_queue) for kind in ("awake", "bell", WORK)]
	return bool(client().eval(RING, len(keys), *keys, RING_SECONDS))


def _send(kind: str, rq_queue: str) -> None:
	"""Sends a message, unless one of its kind still waits."""
	waiting = client().lrange(get_queue(rq_queue).key, -LOOK_BACK, -1)
	# one wish to linger will do for all sites: whoever lingers rings for the others
	mark = WAKE if kind == WAKE else create_job_id(WORK)
	if not any(mark in job_id.decode() for job_id in waiting):
		job_id = f"{kind}-{uuid.uuid4().hex}"
		frappe.enqueue(DRAIN, queue=rq_queue, rq_queue=rq_queue, timeout=MESSAGE_SECONDS, job_id=job_id)


def _rings_of_this_transaction() -> set[str]:
	"""The RQ queues that are going to be rung for; kept with the connection, whose callbacks do it."""
	rings = getattr(frappe.local, "dartwing_rings", None)
	if rings is None:
		rings = frappe.local.dartwing_rings = set()
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
	except redis.RedisError:
		frappe.logger("dartwing_jobs").warning("Redis does not answer", exc_info=True)


def _utc_now() -> datetime:
	return datetime.now(timezone.utc).replace(tzinfo=None)


def _member(rq_queue: str) -> str:
	return f"{frappe.local.site}|{rq_queue}"


def _key(kind: str, rq_queue: str) -> str:
	return f"{PREFIX}:{kind}:{frappe.local.site}:{rq_queue}"
