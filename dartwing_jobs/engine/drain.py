"""A worker's answer to the bell: runs the due jobs of its RQ queue one after another, and then lingers.

Short jobs are claimed several at a time, and their ends are recorded together (`batch.py`).
"""

import gc
import random
import sys
import time
from collections.abc import Callable

import frappe
from frappe import _

from dartwing_jobs import settings
from dartwing_jobs.engine import attempt as attempts
from dartwing_jobs.engine import (
	bell,
	claim,
	database,
	dependents,
	fresh,
	lease,
	promote,
	runs,
	sweep,
	troubles,
)
from dartwing_jobs.engine.batch import Batch
from dartwing_jobs.engine.board import STOP, WANTED, YIELD
from dartwing_jobs.engine.claim import ALL_TURNS, Turns
from dartwing_jobs.engine.facts import Facts
from dartwing_jobs.engine.handling.surroundings import Surroundings
from dartwing_jobs.engine.limits import brakes, holds
from dartwing_jobs.engine.observing import reports, tracing
from dartwing_jobs.engine.pace import Pace
from dartwing_jobs.engine.rules import job_types, routes
from dartwing_jobs.engine.schedules import ticks
from dartwing_jobs.engine.watchdog import Watchdog

# how often a drain looks for what has fallen due, and whether its queues are still to be served
LOOK_SECONDS = 0.5
# a lingering drain listens this long at a time, before it looks whether somebody else needs its worker
LISTEN_SECONDS = 0.05
# a commit whose connection was lost arrives within this, or never
DOUBTFUL_SECONDS = 10


@reports.masked
def answer(rq_queue: str) -> None:
	"""What a ring sends: works until nothing is due, or its slice is over and it rings for the rest."""
	bell.answered(rq_queue)
	frappe.set_user("Administrator")
	watchdog = Watchdog(rq_queue)
	try:
		database.read_committed()
		watchdog.learn_lease(settings.lease_seconds())
		gc.freeze()  # Frappe's modules and metas stay: looking through them again and again is wasted time
		Drain(rq_queue, watchdog).run()
	except BaseException:
		watchdog.stay_behind()
		raise
	else:
		watchdog.stop()
	finally:
		tracing.flush()


def drain(job_queues: list[str]) -> int:
	"""Runs everything that is due now in these queues, here; returns how many jobs were run."""
	inline = Drain(None, None, job_queues)
	while inline.look() and inline.run_due():
		# there is no other process to leave the rest to
		inline.is_used = inline.is_over = False
	return inline.started_jobs


class Drain:
	"""One worker's stay at one RQ queue."""

	def __init__(self, rq_queue: str | None, watchdog: Watchdog | None, job_queues: list[str] | None = None):
		self.rq_queue, self.watchdog, self.given = rq_queue, watchdog, job_queues
		# begins anywhere in the order of turns: one that stays for a single job must not always skip the last
		self.turns, self.facts = Turns([], random.randrange(ALL_TURNS) if rq_queue else 0), Facts()
		self.lease_seconds, self.linger_seconds = settings.lease_seconds(), settings.linger_seconds()
		self.started = self.looked_at = self.worked_at = time.monotonic()
		self.slice_seconds = settings.slice_seconds()
		self.is_used = False  # whether a job has run in this process
		self.taken: str | None = None  # the job that was looked at last
		self.started_jobs = 0
		self.is_over = False  # whether this process may run no more
		self.pace = Pace()
		# what was claimed by the transaction that is under way; and what may have been, by one that failed
		self.claimed: list[Batch] = []
		self.doubtful: list[tuple[float, Batch]] = []
		# as the first job finds them; a process that is not a worker's own is not replaced
		self.surroundings = Surroundings() if rq_queue else None

	def run(self) -> None:
		is_online = self.look()
		while is_online:
			if self.run_due():
				self.worked_at = time.monotonic()
			if self.must_leave() or not self.wait_for_more():
				self.leave()
				return
			is_online = self.can_go_on() or self.look()
		bell.leave_to_others(self.rq_queue)

	def can_go_on(self) -> bool:
		"""Whether there is work without looking: a ring usually follows a job that was put in line."""
		return not self.must_look() and claim.is_waiting(self.turns.job_queues)

	def look(self) -> bool:
		"""At what changes slowly: pauses, what is due or fires, dead leases. False when the engine is off."""
		self.facts.forget()
		if not settings.is_online():
			return False
		self.serve()
		duties = troubles.Duties()
		duties.do(self.return_what_is_doubtful)
		duties.do(sweep.reap_expired)
		duties.do(ticks.fire_due, self.forget_what_it_read)
		duties.do(holds.release_what_may_run, self.turns.job_queues, self.facts)
		duties.do(promote.promote_due, self.turns.job_queues)  # some of what was released falls due
		self.looked_at = time.monotonic()
		return True

	def serve(self) -> None:
		workers = bell.workers_of(self.rq_queue) if self.rq_queue else 1
		self.turns.serve(self.given or routes.by_rq_queue().get(self.rq_queue, []), workers)

	def forget_what_it_read(self) -> None:
		"""A process that lingers remembers the rights of people, who may have lost them since."""
		if self.rq_queue:
			fresh.become("Administrator")

	def run_due(self) -> bool:
		"""Runs jobs until none is due, or it is time to look or to leave; whether there was any."""
		batch = self.take_apart()
		if batch is None:
			return False
		if self.rq_queue:
			self.call_the_next()
		while batch:
			self.run_batch(batch)
			batch = self.end_and_take(batch)
		fresh.become("Administrator")
		if self.watchdog:
			self.watchdog.rest()
		return True

	def run_batch(self, batch: Batch) -> None:
		"""One after the other, for as long as this process may go on."""
		while attempt := batch.begin_next():
			self.started_jobs += 1
			batch.note_end(attempts.run(attempt, batch.record_waiting))
			self.pace.note(attempt.job.job_type, attempt.seconds(attempt.now()))
			self.is_over = self.is_over or attempt.is_poisoned or self.has_lost_its_session()
			if self.must_leave() or (self.watchdog and self.must_look()):
				break
		batch.give_back_rest()

	def end_and_take(self, ended: Batch) -> Batch | None:
		"""Records what has ended and claims what comes next, in one commit.

		What is claimed has no part in the ends of others: if it fails, they are recorded alone.
		"""
		if ended.limits or not ended.waiting:
			ended.record_waiting()
			self.make_room(ended)
			return self.take_apart()

		def end_and_take() -> Batch | None:
			ended.write_waiting()
			return self.take()

		try:
			frappe.set_user("Administrator")
			following = self.in_own_transaction(end_and_take, lambda _batch: not ended.is_held())
		except Exception as error:
			reports.to_log("A drain could not record the ends of jobs and claim others together", error)
			database.rollback()
			ended.record_waiting()
			return self.take_apart()
		ended.forget_waiting()
		return following

	def call_the_next(self) -> None:
		"""More than one worker may be needed; and nobody is to believe that this one still listens."""
		bell.stop_listening(self.rq_queue)
		if claim.is_waiting(self.turns.job_queues):
			bell.ring(self.rq_queue)

	def take_apart(self) -> Batch | None:
		"""Claims the next jobs in a transaction of its own; sets aside what cannot be started."""
		while True:
			self.taken = None
			try:
				return self.in_own_transaction(self.take, lambda batch: bool(batch and batch.is_held()))
			except Exception as error:
				if self.taken is None or database.is_conflict(error) or database.is_lost_connection(error):
					raise
				self.set_aside(self.taken, error)

	def in_own_transaction(self, take: Callable[[], Batch | None], is_committed: Callable) -> Batch | None:
		"""What was claimed by a transaction that failed may still be ours: its commit may arrive late."""
		self.claimed = []
		batch = None
		try:
			batch = database.own_transaction(take, is_committed)()
			return batch
		finally:
			until = time.monotonic() + DOUBTFUL_SECONDS
			self.doubtful += [(until, one) for one in self.claimed if one is not batch]

	def return_what_is_doubtful(self) -> None:
		for until, batch in list(self.doubtful):
			batch.give_back()
			if time.monotonic() > until:
				self.doubtful.remove((until, batch))

	def set_aside(self, job_name: str, error: Exception) -> None:
		"""Every drain of the queue would fail at the same job, and none would reach the next."""
		until = troubles.note("start", job_name, error)
		promote.postpone(
			job_name, until, _("The engine could not start it: {0}").format(runs.message_of(error))
		)

	def take(self) -> Batch | None:
		"""Claims the next jobs, in the caller's transaction; None when none is left for it."""
		self.is_over = self.is_over or self.has_lost_its_session()
		if self.must_leave() or (self.watchdog and self.must_look()):
			return None
		while jobs := self.turns.take(self.room()):
			if batch := self.choose(jobs):
				return batch
			if self.is_over:
				return None
		return None

	def has_lost_its_session(self) -> bool:
		"""A new process makes a session that is known."""
		return bool(self.surroundings) and not self.surroundings.is_connected()

	def room(self) -> int:
		"""How many jobs to claim. Only a watchdog gives back what waits behind a long one."""
		return self.pace.room if self.watchdog else 1

	def choose(self, jobs: list) -> Batch | None:
		"""Of jobs that are locked: the first ones that may be claimed together, or the first one alone."""
		chosen, left = [], list(jobs)
		while left and self.fits(left[0], len(chosen)):
			job = left.pop(0)
			self.taken = job.name
			if holds.hold_if_paused(job, self.facts):
				continue
			limits = brakes.limits_on(job, self.facts)
			if not (limits or self.goes_alone(job)):
				chosen.append(job)
			elif chosen:
				left.append(job)
				break
			elif not holds.hold_if_full(job, limits):
				self.turns.give_up(len(left))
				return self.start(job, limits)
		self.turns.give_up(len(left))
		if len(chosen) > 1:
			return self.hold(chosen)
		return self.start(chosen[0], []) if chosen else None

	def goes_alone(self, job) -> bool:
		"""Started before it runs, and ended before another begins."""
		job_type = self.facts.type_of(job)
		is_alone = job_types.is_isolated(job_type) or job_types.completes_at_once(job_type, job)
		return is_alone or bool(job.claim_alone) or self.watchdog is None

	def fits(self, job, chosen: int) -> bool:
		return chosen < max(1, self.pace.most_of(job.job_type))

	def hold(self, jobs: list) -> Batch:
		"""Jobs that were chosen together: claimed, and not started."""
		token = lease.hold(jobs, self.lease_seconds)
		held = [attempts.claimed(job, self.facts, token, self.watchdog) for job in jobs]
		parents = dependents.waited_for([job.name for job in jobs])
		for attempt in held:
			attempt.has_children = attempt.job.name in parents
		return self.batch_of(held)

	def start(self, job, limits: list) -> Batch | None:
		if job_types.is_isolated(self.facts.type_of(job)):
			self.is_over = True  # alone in its process: in this one if it is new, otherwise in the next
			if self.is_used:
				return None
		attempt = attempts.start(job, self.lease_seconds, self.facts, self.watchdog)
		attempt.limits = limits
		return self.batch_of([attempt])

	def batch_of(self, held: list) -> Batch:
		self.is_used = True
		for number, attempt in enumerate(held):
			attempt.number, attempt.surroundings = number, self.surroundings
		if self.watchdog:
			self.watchdog.announce(held)
		batch = Batch(held, self.watchdog)
		self.claimed.append(batch)
		return batch

	def make_room(self, ended: Batch) -> None:
		"""What was held by the limits of a job that has ended may run now."""
		if not ended.limits:
			return
		freed = database.own_transaction(holds.release)(ended.limits, self.turns.job_queues)
		for rq_queue in {routes.rq_queue_of(queue) for queue in freed} - {self.rq_queue}:
			bell.ring(rq_queue)

	def must_look(self) -> bool:
		return time.monotonic() - self.looked_at > LOOK_SECONDS

	def must_leave(self) -> bool:
		if self.is_over or self.watchdog is None:
			return self.is_over
		is_over_time = time.monotonic() - self.started > self.slice_seconds
		return is_over_time or self.watchdog.says(STOP | YIELD)

	def wait_for_more(self) -> bool:
		"""Lingers: the next submit finds a warm worker. True when there may be something to do."""
		self.note_due()
		bell.ring_for_others(self.rq_queue)
		if is_burst():
			return self.has_worked_since_it_looked()
		if not (self.is_warm() or bell.is_something_due_soon()):
			return False
		while not self.watchdog.says(STOP | WANTED):
			if self.must_look() or bell.listen(self.rq_queue, LISTEN_SECONDS):
				return True
		return False

	def note_due(self) -> None:
		"""Tells others for when to wait, or to ring, in place of this drain."""
		in_vain = None if self.has_worked_since_it_looked() else time.monotonic() - self.looked_at
		bell.note_due(self.rq_queue, sweep.next_duty(self.turns.job_queues), in_vain)

	def has_worked_since_it_looked(self) -> bool:
		"""Then more may be due than is in line: that is put there at a look, a batch at a time."""
		return self.worked_at > self.looked_at

	def is_warm(self) -> bool:
		return time.monotonic() - self.worked_at < self.linger_seconds

	def leave(self) -> None:
		"""Sees to it that somebody comes for what is left; it may never have come to waiting for that."""
		self.note_due()
		is_left = bell.fall_asleep(self.rq_queue) or claim.is_waiting(self.turns.job_queues)
		if is_left or (is_burst() and self.has_worked_since_it_looked()):
			bell.ring(self.rq_queue)
		elif not is_burst() and bell.is_something_due_soon():
			bell.send_wake(self.rq_queue, self.watchdog.served if self.watchdog else None)


def is_burst() -> bool:
	"""Whether this worker is to end when nothing is left: it must not be kept by what falls due later."""
	return "--burst" in sys.argv
