"""What the site calls: hooks that write down that they ran, whitelisted methods, jobs."""

import os

import frappe


def record(text: str) -> None:
	with open(f"../{frappe.local.site}.steps", "a") as file:
		file.write(f"{text}\n")


def before_install() -> None:
	record(f"before_install table={frappe.db.table_exists('Note Item')}")


def after_install() -> None:
	record(f"after_install table={frappe.db.table_exists('Note Item')} notes={frappe.db.count('Note Item')}")


def execute() -> None:
	"""This module is also the app's only patch."""
	record("patch")


def after_migrate() -> None:
	record("after_migrate")


def after_job(method: str, kwargs: dict, result: object) -> None:
	record(f"after_job {method} {result}")


def each_hour() -> None:
	add("hourly")


@frappe.whitelist()
def double(number: int) -> int:
	return number * 2


@frappe.whitelist()
def add(title: str, fail: int = 0) -> str:
	frappe.get_doc({"doctype": "Note Item", "title": title, "body": str(os.getppid())}).insert()
	return frappe.throw("no such luck") if fail else title


@frappe.whitelist(allow_guest=True)
def for_all() -> str:
	return frappe.session.user
