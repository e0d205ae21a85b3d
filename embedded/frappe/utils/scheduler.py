"""The scheduler process: enqueues what the apps' `scheduler_events` say is due."""

import time
from typing import NoReturn

import frappe
from frappe.utils import cint, get_sites


def start_scheduler() -> NoReturn:
	tick = get_scheduler_tick()
	frappe.destroy()
	while True:
		time.sleep(tick)
		enqueue_events_for_all_sites()


def get_scheduler_tick() -> int:
	return cint(frappe.get_conf().scheduler_tick_interval) or 60


def enqueue_events_for_all_sites() -> None:
	frappe.init("")
	sites = get_sites()
	frappe.destroy()
	for site in sites:
		enqueue_events_for_site(site)


def enqueue_events_for_site(site: str) -> None:
	try:
		frappe.init(site)
		frappe.connect()
		if not is_scheduler_inactive():
			enqueue_events(site)
	except Exception:
		frappe.logger("scheduler").error(f"Nothing could be enqueued for {site}", exc_info=True)
	finally:
		frappe.destroy()


def enqueue_events(site: str) -> list[str]:
	names = frappe.get_all("Scheduled Job Type", filters={"stopped": 0}, pluck="name")
	types = [frappe.get_doc("Scheduled Job Type", name) for name in names]
	return [job_type.method for job_type in types if job_type.enqueue()]


def is_scheduler_inactive(verbose: bool = True) -> bool:
	conf = frappe.local.conf
	return bool(conf.maintenance_mode or conf.pause_scheduler) or is_scheduler_disabled()


def is_scheduler_disabled(verbose: bool = True) -> bool:
	if frappe.local.conf.disable_scheduler:
		return True
	return not cint(frappe.db.get_single_value("System Settings", "enable_scheduler"))


def toggle_scheduler(enable: bool) -> None:
	frappe.db.set_single_value("System Settings", "enable_scheduler", int(enable))


def enable_scheduler() -> None:
	toggle_scheduler(True)


def disable_scheduler() -> None:
	toggle_scheduler(False)
