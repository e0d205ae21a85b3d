"""Held jobs: due, but out of their line while a brake is on, so that they stop nobody behind them.

A held job stands beside its line, keeps its place (`held_key`) and has the reason. Who looks around puts it
back when the brake is off. One that is still Pending has no place yet: it gets one when it is put back.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

from dartwing_jobs.engine import bell, database, order, statements, troubles
from dartwing_jobs.engine.facts import Facts
from dartwing_jobs.engine.limits import brakes, turnstiles
from dartwing_jobs.engine.limits.brakes import Brake, RateLimit
from dartwing_jobs.engine.rules import routes

# before everybody's place: its key and its name
HEAD_OF_LINE = (0, "")
# those behind the first one in line that a brake holds too are taken out along with it
BATCH = 1000
# what is put back at once, when nothing but a pause held it
RELEASED_AT_ONCE = 1000
# putting a job back into its line
RELEASE = "release"
HELD = f"""select name from `tabBackground Job` where job_queue = %s and held_by = %s
	and {troubles.NOT_SET_ASIDE.format(duty=RELEASE, column="`tabBackground Job`.name")}
	order by held_key, name limit %s for update skip locked"""

# puts back at most so many that a brake (its key) holds in a queue; returns how many
PutBack = Callable[[str, str, int], int]
Released = TypeVar("Released")


def hold_if_paused(job, facts: Facts) -> bool:
	"""Takes a job that is locked out of its line if it is paused; whether it was."""
	pause = brakes.pause_on(job, facts)
	if pause:
		_hold(job, pause)
	return pause is not None


def hold_if_full(job, limits: list) -> bool:
	"""Takes a job that is locked out of its line if a limit is reached; whether one was.

	Until the end of the transaction nobody else counts under these limits.
	"""
	for limit in limits:
		turnstiles.enter(f"running|{limit.key}")
		if limit.free() <= 0:
			_hold(job, limit)
			if isinstance(limit, RateLimit):
				_wait_for_the_window(job, limit)
			return True
	return False


def hold_pending(job_name: str, brake: Brake) -> None:
	"""Keeps a job that has fallen due, and is locked, from its line."""
	columns = {"run_at": None, "held_by": brake.key, "held_reason": brake.reason[: order.REASON_LENGTH]}
	statements.update("Background Job", job_name, columns)


def release(limits: list, own_queues: list[str]) -> set[str]:
	"""Puts back as many as may run now under these limits, of these queues first; returns whose they are."""
	return _at_once_or_each(lambda put_back: _release(limits, own_queues, put_back))


def release_what_may_run(job_queues: list[str], facts: Facts) -> int:
	"""Puts back whatever is held in these queues by brakes that are off now; returns how many."""
	return _at_once_or_each(lambda put_back: _release_what_may_run(job_queues, facts, put_back))


def _at_once_or_each(work: Callable[[PutBack], Released]) -> Released:
	"""If one of many cannot be put back, the others must not wait for it."""
	try:
		return work(_put_back)
	except Exception as error:
		if database.is_lost_connection(error) or database.is_conflict(error):
			raise
	database.rollback()
	return work(_put_back_each)


def _release(limits: list, own_queues: list[str], put_back: PutBack) -> set[str]:
	others = [
		queue for queues in routes.by_rq_queue().values() for queue in queues if queue not in own_queues
	]
	freed = set()
	for limit in limits:
		room = limit.free()
		for queue in [*own_queues, *others]:
			count = put_back(limit.key, queue, room)
			room -= count
			freed |= {queue} if count else set()
	return freed


@database.own_transaction
def _release_what_may_run(job_queues: list[str], facts: Facts, put_back: PutBack) -> int:
	return sum(
		put_back(key, queue, _free(brakes.behind(key, facts))) for queue in job_queues for key in _keys(queue)
	)


@database.own_transaction
def hold_paused(job_queue: str, pause: Brake, after: tuple[int, str]) -> tuple[int, str] | None:
	"""Takes a batch out of line from a place on; returns the last place it looked at, None at the end.

	A place is the key and the name: some jobs have the same key.
	"""
	rows = statements.fetch(
		f"""select name, claim_key, {_column(pause)} as scope from `tabBackground Job`
		where line = %s and claim_key >= %s and (claim_key > %s or name > %s)
		order by claim_key, name limit {BATCH}""",
		(job_queue, after[0], *after),
	)
	(scope,) = pause.like_it.values()
	_take_out([row.name for row in rows if row.scope == scope], job_queue, pause)
	return (rows[-1].claim_key, rows[-1].name) if len(rows) == BATCH else None


def _hold(job, brake: Brake) -> None:
	"""This one, and those near the head of the line that the same brake holds."""
	(scope,) = brake.like_it.values()
	rows = statements.fetch(
		f"""select name from (select name, {_column(brake)} as scope from `tabBackground Job`
		where line = %s and claim_key >= 1 order by claim_key, name limit {BATCH}) head where scope = %s""",
		(job.job_queue, scope),
	)
	behind = _unlocked([row.name for row in rows if row.name != job.name])
	_take_out([job.name, *behind], job.job_queue, brake)


def _take_out(names: list[str], line: str, brake: Brake) -> None:
	if not names:
		return
	statements.execute(
		f"""update `tabBackground Job` set held_by = %s, held_reason = %s, held_key = claim_key, line = %s
		where name in ({", ".join(["%s"] * len(names))}) and line = %s""",
		(brake.key, brake.reason[: order.REASON_LENGTH], order.beside(line), *names, line),
	)


def _unlocked(names: list[str]) -> list[str]:
	"""Those of them that nobody else is about to start; locked."""
	rows = names and statements.fetch(
		f"""select name from `tabBackground Job` where name in ({", ".join(["%s"] * len(names))})
		order by name for update skip locked""",
		names,
	)
	return [row.name for row in rows]


def _wait_for_the_window(job, limit: RateLimit) -> None:
	"""One of those that are held waits for its moment: the worker that comes then looks at the others."""
	moment = limit.free_at()
	columns = {**order.OUT_OF_LINE, **order.NOT_HELD, "held_reason": limit.reason[: order.REASON_LENGTH]}
	statements.update("Background Job", job.name, {**columns, "run_at": moment})
	bell.ring_when_due_after_commit(job.job_queue, moment)


def _put_back(key: str, job_queue: str, most: int) -> int:
	if most <= 0:
		return 0
	names = _held(key, job_queue, most)
	if names:
		_into_line(names)
	return len(names)


def _put_back_each(key: str, job_queue: str, most: int) -> int:
	"""Each in a transaction of its own."""
	names = _held(key, job_queue, most) if most > 0 else []
	database.rollback()
	return sum(filter(None, troubles.each(RELEASE, names, lambda name: _put_back_alone(key, name))))


@database.own_transaction
def _put_back_alone(key: str, name: str) -> int:
	held = statements.fetch(
		"select name from `tabBackground Job` where name = %s and held_by = %s for update skip locked",
		(name, key),
	)
	if held:
		_into_line([name])
	return len(held)


def _held(key: str, job_queue: str, most: int) -> list[str]:
	"""Locked."""
	return [row.name for row in statements.fetch(HELD, (job_queue, key, most))]


def _into_line(names: list[str]) -> None:
	statements.execute(
		f"""update `tabBackground Job` set line = case status when 'Pending' then null else job_queue end,
		run_at = case status when 'Pending' then utc_timestamp(6) else null end,
		held_by = null, held_reason = null, held_key = 0
		where name in ({", ".join(["%s"] * len(names))})""",
		names,
	)


def _free(brake: Brake | None) -> int:
	return RELEASED_AT_ONCE if brake is None else brake.free()


def _keys(job_queue: str) -> Iterator[str]:
	"""Each brake that holds somebody in a queue: a step through the index per brake, not per job."""
	statement = (
		"select min(held_by) as held_by from `tabBackground Job` where job_queue = %s and held_by > %s"
	)
	key = ""
	while key := statements.fetch(statement, (job_queue, key))[0].held_by:
		yield key


def _column(brake: Brake) -> str:
	(column,) = brake.like_it
	return f"`{column}`"
