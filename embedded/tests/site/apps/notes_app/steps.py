"""Writes down which hooks ran and what was there already."""

import frappe


def record(text: str) -> None:
	with open(f"../{frappe.local.site}.steps", "a") as file:
		file.write(f"{text}\n")


def before_install() -> None:
	record(f"before_install table={bool(frappe.db.exists('DocType', 'Note Item'))}")


def after_install() -> None:
	fixtures = frappe.db.count("Note Item")
	record(f"after_install table={bool(frappe.db.exists('DocType', 'Note Item'))} fixtures={fixtures}")


def before_migrate() -> None:
	record("before_migrate")


def after_migrate() -> None:
	record("after_migrate")


def before_uninstall() -> None:
	record("before_uninstall")


def after_uninstall() -> None:
	record(f"after_uninstall table={bool(frappe.db.exists('DocType', 'Note Item'))}")


def before_job(method: str, kwargs: dict, transaction_type: str) -> None:
	record(f"before_job {method}")


def after_job(method: str, kwargs: dict, result: object) -> None:
	record(f"after_job {method} {result}")
