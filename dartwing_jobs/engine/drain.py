"""A worker's answer to the bell: runs the due jobs of its RQ queue one after another, and then lingers."""

import gc
import random
import sys
import time

import frappe
from frappe import _

from dartwing_jobs import settings
from dartwing_jobs.engine import attempt as attempts
from dartwing_jobs.engine import bell, claim, database, fresh, promote, runs, sweep, troubles
from dartwing_jobs.engine.board import STOP, WANTED, YIELD
from dartwing_jobs.engine.claim import ALL_TURNS, Turns
from dartwing_jobs.engine.facts import Facts
from dartwing_jobs.engine.handling.surroundings import Surroundings
from dartwing_jobs.engine.limits import brakes, holds
from dartwing_jobs.engine.observing import reports, tracing
from dartwing_jobs.engine.rules import job_types, routes
from dartwing_jobs.engine.schedules import ticks
from dartwing_jobs.engine.watchdog import Watchdog

# how often a drain looks for what has fallen due, and whether its queues are still to be served
LOOK_SECONDS = 0.5
# a lingering drain listens this long at a time, before it looks whether somebody else needs its worker
LISTEN_SECONDS = 0.05


@reports.masked
def answer(rq_queue: str) -> None:
	"""What a ring sends: works until nothing is due, or its slice is over and it rings for the rest."""
	bell.answered(rq_queue)
	frappe.set_user("Administrator")
	watchdog = Watchdog(rq_queue)
	try:
		database.read_committed()
		watchdog.begin(settings.lease_seconds())
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
		self.taken: str | None = None  # the job that was claimed last
		self.started_jobs = 0
		self.is_over = False  # whether this process may run no more
		self.must_count = False  # whether the next in line is limited: see `start_next`
		# as the first job finds them; a process that is not a worker's own is not replaced
		self.surroundings = Surroundings() if rq_queue else None

	def run(self) -> None:
		while self.look():
			if self.run_due():
				self.worked_at = time.monotonic()
			if self.must_leave() or not self.wait_for_more():
				self.leave()
				return
		bell.leave_to_others(self.rq_queue)

	def look(self) -> bool:
		"""At what changes slowly: pauses, what is due or fires, dead leases. False when the engine is off."""
		self.facts.forget()
		if not settings.is_online():
			return False
		self.turns.serve(self.given or routes.by_rq_queue().get(self.rq_queue, []))
		duties = troubles.Duties()
		duties.do(sweep.reap_expired)
		duties.do(ticks.fire_due, self.forget_what_it_read)
		duties.do(holds.release_what_may_run, self.turns.job_queues, self.facts)
		duties.do(promote.promote_due, self.turns.job_queues)  # some of what was released falls due
		self.looked_at = time.monotonic()
		return True

	def forget_what_it_read(self) -> None:
		"""A process that lingers remembers the rights of people, who may have lost them since."""
		if self.rq_queue:
			fresh.become("Administrator")

	def run_due(self) -> bool:
		"""Runs jobs until none is due, or it is time to look or to leave; whether there was any."""
		attempt = self.start_alone()
		if attempt is None:
			return False
		if self.rq_queue:
			self.call_the_next()
		while attempt:
			following = attempts.run(attempt, self.start_next)
			self.is_over = self.is_over or attempt.is_poisoned
			if not following and self.watchdog:
				self.watchdog.rest()  # what has ended is not to be watched while the next one waits its turn
			is_room = self.make_room(attempt) or attempt.job.released
			attempt = following or (self.start_alone() if self.must_count or is_room else None)
		fresh.become("Administrator")
		if self.watchdog:
			self.watchdog.rest()
		return True

	def call_the_next(self) -> None:
		"""More than one worker may be needed; and nobody is to believe that this one still listens."""
		bell.stop_listening(self.rq_queue)
		if claim.is_waiting(self.turns.job_queues):
			bell.ring(self.rq_queue)

	def start_alone(self) -> "attempts.Attempt | None":
		"""Claims and starts the next job in a transaction of its own; sets aside what cannot be started."""
		while True:
			self.taken = None
			try:
				return attempts.start_apart(lambda: self.start_next(is_alone=True))
			except Exception as error:
				if self.taken is None or database.is_conflict(error) or database.is_lost_connection(error):
					raise
				self.set_aside(self.taken, error)

	def set_aside(self, job_name: str, error: Exception) -> None:
		"""Every drain of the queue would fail at the same job, and none would reach the next."""
		until = troubles.note("start", job_name, error)
		promote.postpone(
			job_name, until, _("The engine could not start it: {0}").format(runs.message_of(error))
		)

	def start_next(self, is_alone: bool = False) -> "attempts.Attempt | None":
		"""Claims and starts the next job, in the caller's transaction; None when none is left for it.

		Who starts a limited job makes others wait who count under the same limit. That must not be part of a
		transaction with a handler's work in it: such jobs are started alone.
		"""
		self.must_count = False
		if self.surroundings and not self.surroundings.is_connected():
			self.is_over = True  # a new process makes a session that is known
		if self.must_leave() or (self.watchdog and self.must_look()):
			return None
		while job := self.turns.take_next():
			self.taken = job.name
			if holds.hold_if_paused(job, self.facts):
				continue
			limits = brakes.limits_on(job, self.facts)
			self.must_count = bool(limits) and not is_alone
			if self.must_count:
				return None
			if not holds.hold_if_full(job, limits):
				return self.start(job, limits)
		return None

	def start(self, job, limits: list) -> "attempts.Attempt | None":
		if job_types.is_isolated(self.facts.type_of(job)):
			self.is_over = True  # alone in its process: in this one if it is new, otherwise in the next
			if self.is_used:
				return None
		self.is_used = True
		self.started_jobs += 1
		attempt = attempts.start(job, self.lease_seconds, self.facts, self.watchdog)
		attempt.limits, attempt.surroundings = limits, self.surroundings
		return attempt

	def make_room(self, ended: "attempts.Attempt") -> bool:
		"""What was held by the limits of a job that has ended may run now; whether some of it is for us."""
		if not ended.limits:
			return False
		freed = database.own_transaction(holds.release)(ended.limits, self.turns.job_queues)
		for rq_queue in {routes.rq_queue_of(queue) for queue in freed} - {self.rq_queue}:
			bell.ring(rq_queue)
		return not freed.isdisjoint(self.turns.job_queues)

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
