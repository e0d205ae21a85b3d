"""Bring a site to its apps' current state."""

import fcntl
from collections.abc import Callable

import frappe
from frappe.core.doctype.scheduled_job_type.scheduled_job_type import sync_jobs
from frappe.model.sync import remove_orphan_doctypes, sync_all
from frappe.modules.patch_handler import PatchType, run_all
from frappe.utils.fixtures import sync_fixtures


class SiteMigration:
	def __init__(self, skip_failing: bool = False, skip_search_index: bool = False):
		self.skip_failing = skip_failing

	def run(self, site: str) -> None:
		frappe.init(site)
		frappe.connect()
		with open(frappe.get_site_path("migrate.lock"), "w") as lock:
			fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
			frappe.clear_cache()
			frappe.flags.in_migrate = True
			try:
				for step in (self.pre_schema_updates, self.run_schema_updates, self.post_schema_updates):
					_in_one_transaction(step)
			finally:
				frappe.flags.in_migrate = False
				frappe.clear_cache()
				frappe.destroy()

	def pre_schema_updates(self) -> None:
		_run_hooks("before_migrate")

	def run_schema_updates(self) -> None:
		run_all(self.skip_failing, PatchType.pre_model_sync)
		sync_all()
		run_all(self.skip_failing, PatchType.post_model_sync)

	def post_schema_updates(self) -> None:
		sync_jobs()
		sync_fixtures()
		remove_orphan_doctypes()
		_run_hooks("after_migrate")


def _in_one_transaction(step: Callable[[], None]) -> None:
	try:
		step()
		frappe.db.commit()
	except Exception:
		frappe.db.rollback()
		raise


def _run_hooks(event: str) -> None:
	for app in frappe.get_installed_apps():
		for method in frappe.get_hooks(event, app_name=app):
			frappe.get_attr(method)()
