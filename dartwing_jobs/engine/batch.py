"""Jobs that a drain has claimed together, by one lease: begun one by one, and recorded together.

What has ended waits here as plain data, outside of any transaction, for 30 milliseconds at most.
"""

import time

import frappe

from dartwing_jobs.engine import attempt as attempts
from dartwing_jobs.engine import completions, database, lease, lost, outcomes
from dartwing_jobs.engine.attempt import Attempt
from dartwing_jobs.engine.completions import Completion

# an end waits so long at most for others to be recorded with
WAIT_SECONDS = 0.03
# a claim is looked at again after this: a job may have been canceled meanwhile
SURE_SECONDS = 0.04


class Batch:
	def __init__(self, held: list[Attempt], watchdog=None):
		self.attempts: list[Attempt | None] = held  # without those that were canceled, or taken from us
		self.watchdog = watchdog
		self.token, self.limits = held[0].lease_token, held[0].limits
		self.next = 0
		self.waiting: dict[int, Completion] = {}  # by their numbers
		self.waiting_since = 0.0
		self.sure_at = held[0].job.held_since

	def begin_next(self) -> Attempt | None:
		"""The next job that is still ours has begun; None when there is none."""
		if self.watchdog and self.next == 0:
			self.watchdog.hold(self.attempts)
		self._look_again()
		while self.next < len(self.attempts):
			attempt, self.next = self.attempts[self.next], self.next + 1
			if attempt and self._begin(attempt):
				return attempt
		return None

	def _begin(self, attempt: Attempt) -> bool:
		"""False when the watchdog has given it back."""
		if not attempt.is_started:
			attempt.begin()
		return self.watchdog is None or self.watchdog.begin(attempt.number, attempt.watch.microseconds())

	def note_end(self, completion: Completion | None) -> None:
		"""How the job that was begun last has ended, if that is still to be recorded."""
		if completion is None:
			return
		attempt = self.attempts[self.next - 1]
		if not self.waiting:
			self.waiting_since = time.monotonic()
		self.waiting[attempt.number] = completion
		if len(self.attempts) > 1:
			self.watchdog.keep(attempt.number, completion.packed())
			is_old = time.monotonic() - self.waiting_since > WAIT_SECONDS
			if self.next < len(self.attempts) and (is_old or _ends_at_once(attempt)):
				self.record_waiting()

	def write_waiting(self) -> None:
		"""In the caller's transaction."""
		completions.record(list(self.waiting.values()))

	def forget_waiting(self) -> None:
		"""They are recorded."""
		if len(self.attempts) > 1:
			self.watchdog.note_recorded(self.token, list(self.waiting))
		self.waiting = {}

	def record_waiting(self) -> None:
		"""In a transaction of its own."""
		if not self.waiting:
			return
		frappe.set_user("Administrator")
		try:
			database.own_transaction(self.write_waiting, lambda _nothing: not self.is_held())()
		except Exception as error:
			if database.is_conflict(error) or database.is_lost_connection(error):
				raise
			self._record_each()
		self.forget_waiting()

	def is_held(self) -> bool:
		"""Whether the jobs that are to be recorded, or else the first one, are held by our lease."""
		number = next(iter(self.waiting), 0)
		return lease.is_held(self.attempts[number].job.name, self.token)

	def give_back(self) -> None:
		"""All of it, of which no job has begun, if our lease holds it at all."""
		lost.give_back([one.job.name for one in self.attempts], self.token, self.attempts[0].is_started)

	def give_back_rest(self) -> None:
		"""What was not begun, before anything else is done."""
		if self.next < len(self.attempts):
			taken = self.watchdog.take_rest(self.token)
			rest = [self.attempts[number] for number in taken]
			lease.give_back([one.job.name for one in rest if one], self.token)
			self.watchdog.note_recorded(self.token, taken)

	def _record_each(self) -> None:
		"""One of them cannot be stored: the others must not fail with it."""
		for number, completion in self.waiting.items():
			try:
				with attempts.in_our_words():
					database.own_transaction(completions.record)([completion])
			except Exception as error:
				attempts.record(self.attempts[number], outcomes.failed, error, frappe.get_traceback())

	def _look_again(self) -> None:
		"""What was canceled, or taken from us, is not begun."""
		rest = self.attempts[self.next :]
		if self.next == 0 or not rest or time.monotonic() - self.sure_at < SURE_SECONDS:
			return
		held = lease.waiting_of([one.job.name for one in rest if one], self.token)
		database.rollback()  # each handler begins in an empty transaction
		self.sure_at = time.monotonic()
		self.attempts[self.next :] = [one if one and one.job.name in held else None for one in rest]


def _ends_at_once(attempt: Attempt) -> bool:
	"""Whether others wait for the end of this job."""
	job = attempt.job
	return bool(attempt.has_children or job.job_group or job.has_unique_key or job.job_schedule)
