"""What keeps a job from starting although it is due: pauses, disabled types, limits on what runs or starts.

Limits are counted from what really runs, by one worker at a time (`turnstiles.py`), in the transaction
that starts the job: never too many, and a worker that is killed takes no place with it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from dartwing_jobs.engine import database, naming, statements
from dartwing_jobs.engine.burials import ALERT
from dartwing_jobs.engine.rules import policies

RUNNING = "(select 1 from `tabBackground Job` where {0} limit {1}) counted"
DISABLED = "disabled type"
STARTED = "(select 1 from `tabJob Run` where job_type = %s and name > %s limit {0}) counted"


class Pause(NamedTuple):
	"""Somebody has said: not now."""

	key: str
	reason: str
	like_it: dict  # what other jobs have that it holds too

	def free(self) -> int:
		return 0


@dataclass(frozen=True)
class RunningLimit:
	"""No more than so many at once."""

	key: str
	reason: str
	like_it: dict
	most: int
	condition: str
	values: tuple

	def free(self) -> int:
		source = RUNNING.format(self.condition, self.most)
		return (
			self.most - statements.fetch(f"select count(*) as running from {source}", self.values)[0].running
		)


@dataclass(frozen=True)
class RateLimit:
	"""No more starts than so many within a window that moves along with the time."""

	key: str
	reason: str
	like_it: dict
	most: int
	seconds: int
	job_type: str

	def free(self) -> int:
		source = STARTED.format(self.most)
		values = self.job_type, self._edge()
		return self.most - statements.fetch(f"select count(*) as started from {source}", values)[0].started

	def free_at(self) -> datetime:
		"""When the oldest start of the window leaves it, in UTC."""
		statement = "select min(name) as name from `tabJob Run` where job_type = %s and name > %s"
		(oldest,) = statements.fetch(statement, (self.job_type, self._edge()))
		if not oldest.name:
			return database.utc_now()  # it has left the window since it was counted
		return naming.moment_of_row(oldest.name) + timedelta(seconds=self.seconds)

	def _edge(self) -> str:
		return naming.first_row_name_of_the_last(self.seconds)


Limit = RunningLimit | RateLimit
Brake = Pause | Limit


def pause_on(job, facts) -> Pause | None:
	"""The pause that holds this job, if any. An organization is told of its dead letters whatever it does."""
	policy = None if job.job_type == ALERT else facts.policy_of(job.organization)
	for brake in _pauses(facts.type_of(job), policy):
		return brake
	return None


def pause_of_type(name: str, facts) -> Pause | None:
	"""What holds all jobs of a type: it is disabled, or paused."""
	return _first(_pauses(facts.type_named(name), None))


def pause_of_organization(name: str, facts) -> Pause | None:
	return _first(_pauses(None, facts.policy_of(name)))


def disabled(job_type: str) -> Pause:
	"""A type that takes no new jobs does not start the old ones either."""
	return Pause(f"{DISABLED}|{job_type}", f"Job Type {job_type} is disabled", {"job_type": job_type})


def limits_on(job, facts) -> list[Limit]:
	"""The limits that this job is counted under, in the order in which everybody counts."""
	if job.job_type == ALERT:
		return []
	job_type, policy = facts.type_of(job), facts.policy_of(job.organization)
	most_in_queue = facts.most_running_in(job.job_queue)
	if not (most_in_queue or _limits_starts(job_type) or (policy and policy.max_running)):
		return []
	return [
		*_queue_limit(job.job_queue, most_in_queue),
		*_organization_limit(policy),
		*_type_limit(job_type),
		*_rate_limit(job_type),
	]


def behind(key: str, facts) -> Brake | None:
	"""The brake of this key, as it is now; None when there is no such brake any more."""
	kind, _bar, name = key.partition("|")
	return _BY_KIND[kind](name, facts)


def _pauses(job_type, policy):
	if job_type and not job_type.is_enabled:
		yield disabled(job_type.name)
	if job_type and job_type.paused:
		yield _pause("paused type", f"Job Type {job_type.name}", job_type, {"job_type": job_type.name})
	if policy and policy.paused:
		name = policy.organization
		yield _pause("paused organization", f"Organization {name}", policy, {"organization": name})


def _pause(kind: str, what: str, row, like_it: dict) -> Pause:
	(name,) = like_it.values()
	because = f": {row.pause_reason}" if row.pause_reason else ""
	return Pause(f"{kind}|{name}", f"{what} is paused{because}", like_it)


def _limits_starts(job_type) -> bool:
	return bool(job_type) and bool(job_type.max_running or _rate(job_type)[0])


def _queue_limit(name: str, most: int) -> list[RunningLimit]:
	if not most:
		return []
	# leases are of jobs that run, or are about to: so this reads few others
	condition = "job_queue = %s and lease_expires_at is not null and status = 'Running'"
	return [_running("queue", f"queue {name}", {"job_queue": name}, most, condition)]


def _organization_limit(policy) -> list[RunningLimit]:
	if not policy or not policy.max_running:
		return []
	name = policy.organization
	condition = "organization = %s and status = 'Running'"
	return [
		_running(
			"organization", f"organization {name}", {"organization": name}, policy.max_running, condition
		)
	]


def _type_limit(job_type) -> list[RunningLimit]:
	if not job_type or not job_type.max_running:
		return []
	name = job_type.name
	condition = "job_type = %s and status = 'Running'"
	return [_running("type", f"Job Type {name}", {"job_type": name}, job_type.max_running, condition)]


def _running(kind: str, what: str, like_it: dict, most: int, condition: str) -> RunningLimit:
	(name,) = like_it.values()
	reason = f"At most {most} of {what} run at once"
	return RunningLimit(f"{kind}|{name}", reason, like_it, most, condition, (name,))


def _rate_limit(job_type) -> list[RateLimit]:
	most, seconds = _rate(job_type) if job_type else (0, 0)
	if not most:
		return []
	name = job_type.name
	reason = f"At most {most} of Job Type {name} start within {seconds} seconds"
	return [RateLimit(f"rate|{name}", reason, {"job_type": name}, most, seconds, name)]


def _rate(job_type) -> tuple[int, int]:
	"""How many may start within how many seconds: as the type says, or else its category."""
	source = job_type if job_type.rate_limit else policies.category_of(job_type)
	return source.rate_limit, source.rate_window_seconds


def _first(brakes) -> Brake | None:
	return next(iter(brakes), None)


_BY_KIND: dict[str, Callable] = {
	DISABLED: pause_of_type,
	"paused type": pause_of_type,
	"paused organization": pause_of_organization,
	"queue": lambda name, facts: _first(_queue_limit(name, facts.most_running_in(name))),
	"organization": lambda name, facts: _first(_organization_limit(facts.policy_of(name))),
	"type": lambda name, facts: _first(_type_limit(facts.type_named(name))),
	"rate": lambda name, facts: _first(_rate_limit(facts.type_named(name))),
}
