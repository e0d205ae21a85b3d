"""Job Category: what job types of one kind have in common."""

from frappe import _

from dartwing_jobs.document import JobsDocument
from dartwing_jobs.engine.rules import policies
from dartwing_jobs.engine.rules.categories import STANDARD_CATEGORIES
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw


class JobCategory(JobsDocument):
	def validate(self):
		if self.rate_limit and not self.rate_window_seconds:
			throw(_("Most Starts needs a window of at least one second."), InvalidJobError)
		if self.backoff_cap_seconds < self.backoff_base_seconds:
			throw(_("Backoff Cap must not be less than Backoff Base."), InvalidJobError)

	def on_update(self):
		policies.forget()

	def after_delete(self):
		policies.forget()

	def on_trash(self):
		if self.name in STANDARD_CATEGORIES:
			throw(_("{0} is a standard category.").format(self.name), InvalidJobError)
