"""What must be known before a job may start, beside the job itself: its type, and its owner's rights.

Read again for each attempt, but not a hundred times a second for the same answer: a drain keeps what it has
read until it looks around again, half a second later.
"""

from dartwing_jobs import tenancy
from dartwing_jobs.engine import database, job_types, runs


class Facts:
	def __init__(self):
		self.types: dict[str, object] = {}
		self.refusals: dict[tuple[str, str, str], str | None] = {}

	def forget(self) -> None:
		self.types.clear()
		self.refusals.clear()

	def type_of(self, job):
		"""The row of the job's type; None when it is gone."""
		if job.job_type not in self.types:
			self.types[job.job_type] = job_types.read(job.job_type)
		return self.types[job.job_type]

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
