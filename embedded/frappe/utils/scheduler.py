"""The scheduler process: enqueues what the apps' `scheduler_events` say is due."""

import time
from typing import NoReturn

import frappe
from frappe.utils import cint, get_sites


def start_scheduler() -> NoReturn:
	tick = cint(frappe.get_conf().scheduler_tick_interval) or 60
	frappe.destroy()
	while True:
		time.sleep(tick)
		for site in get_sites():
			enqueue_events_for_site(site)


def enqueue_events_for_site(site: str) -> None:
	try:
		frappe.init(site)
		frappe.connect()
		if not is_scheduler_inactive():
			for name in frappe.get_all("Scheduled Job Type", filters={"stopped": 0}, pluck="name"):
				frappe.get_doc("Scheduled Job Type", name).enqueue()
	except Exception:
		frappe.logger("scheduler").error(f"Nothing could be enqueued for {site}", exc_info=True)
	finally:
		frappe.destroy()


def is_scheduler_inactive() -> bool:
	conf = frappe.local.conf
	stopped = conf.maintenance_mode or conf.pause_scheduler or conf.disable_scheduler
	return bool(stopped) or not cint(frappe.db.get_single_value("System Settings", "enable_scheduler"))


def enable_scheduler() -> None:
	frappe.db.set_single_value("System Settings", "enable_scheduler", 1)
