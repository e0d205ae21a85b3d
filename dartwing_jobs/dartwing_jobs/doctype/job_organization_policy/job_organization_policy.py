"""Job Organization Policy: pauses and limits of one organization."""

from dartwing_jobs.document import JobsDocument
from dartwing_jobs.engine import pauses
from dartwing_jobs.engine.rules import policies


class JobOrganizationPolicy(JobsDocument):
	def on_update(self):
		policies.forget()
		if self.paused:
			pauses.mark_after_commit(pauses.ORGANIZATION, self.organization)
		else:
			pauses.ring_if_it_held(self.get_doc_before_save())

	def after_delete(self):
		policies.forget()
		pauses.ring_after_commit()
