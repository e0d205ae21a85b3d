"""Job Organization Policy: pauses and limits of one organization."""

from dartwing_jobs.document import JobsDocument


class JobOrganizationPolicy(JobsDocument):
	pass
