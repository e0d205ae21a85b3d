"""What must be known before a job may start, beside the job itself: its type, its owner's rights, its brakes.

Read again for each attempt, but not a hundred times a second for the same answer: a drain keeps what it has
read until it looks around again, half a second later.
"""

from dartwing_jobs import tenancy
from dartwing_jobs.engine import database, runs
from dartwing_jobs.engine.rules import job_types, policies


class Facts:
	def __init__(self):
		self.types: dict[str, object] = {}
		self.refusals: dict[tuple[str, str, str], str | None] = {}
		self.policies: dict[str, object] | None = None
		self.queue_limits: dict[str, int] = {}

	def forget(self) -> None:
		self.policies = None
		for known in (self.types, self.refusals, self.queue_limits):
			known.clear()

	def type_of(self, job):
		"""The row of the job's type; None when it is gone."""
		return self.type_named(job.job_type)

	def type_named(self, name: str):
		if name not in self.types:
			self.types[name] = job_types.read(name)
		return self.types[name]

	def policy_of(self, organization: str):
		"""Pauses and limits of an organization; None when it has none."""
		if self.policies is None:
			self.policies = policies.of_organizations()
		return self.policies.get(organization)

	def most_running_in(self, job_queue: str) -> int:
		"""How many jobs of a queue may run at once; 0 when it does not matter."""
		if job_queue not in self.queue_limits:
			self.queue_limits[job_queue] = policies.most_running_in(job_queue)
		return self.queue_limits[job_queue]

	def refusal(self, job) -> str | None:
		"""Why this job may not run now; None if it may."""
		job_type = self.type_of(job)
		if job_type is None:
			return f"Job Type {job.job_type} not found"
		key = job.owner_user, job.organization, job.job_type
		if key not in self.refusals:
			self.refusals[key] = _refusal(job, job_type.requires_permission)
		return self.refusals[key]


def _refusal(job, required: str | None) -> str | None:
	"""A question that cannot be answered is this one job's misfortune, and nobody else's."""
	try:
		return tenancy.reason_not_to_run(job.owner_user, job.organization, required)
	except Exception as error:
		if database.is_conflict(error) or database.is_lost_connection(error):
			raise
		return f"Permission denied: {required} could not be checked: {runs.message_of(error)}"
