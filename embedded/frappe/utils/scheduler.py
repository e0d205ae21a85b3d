"""The scheduler process: enqueues what the apps' `scheduler_events` say is due."""

import time
from typing import NoReturn

import frappe
from frappe.utils import cint, get_sites


def start_scheduler() -> NoReturn:
	tick = cint(frappe.get_common_site_config(".").scheduler_tick_interval) or 60
	while True:
		time.sleep(tick)
		for site in get_sites():
			try:
				frappe.connect(site)
				if frappe.db.get_single_value("System Settings", "enable_scheduler"):
					for name in frappe.get_all("Scheduled Job Type", filters={"stopped": 0}, pluck="name"):
						frappe.get_doc("Scheduled Job Type", name).enqueue()
			except Exception:
				frappe.logger("scheduler").error(f"Nothing could be enqueued for {site}", exc_info=True)
			finally:
				frappe.destroy()


def enable_scheduler() -> None:
	frappe.db.set_single_value("System Settings", "enable_scheduler", 1)
