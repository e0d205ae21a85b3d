"""Helpers that apps import from frappe.utils."""

import os
import re
from collections import deque
from pathlib import Path

import frappe
from frappe.utils.data import *  # noqa: F403
from frappe.utils.data import sanitize_html

EMAIL = re.compile(r"[a-z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-z0-9-]+(\.[a-z0-9-]+)*", re.IGNORECASE)


class CallbackManager:
	def __init__(self) -> None:
		self._functions = deque()
		self.add, self.reset = self._functions.append, self._functions.clear

	def run(self) -> None:
		while self._functions:
			self._functions.popleft()()


def get_site_name(hostname: str) -> str:
	return hostname.split(":", 1)[0]


def get_bench_id() -> str:
	conf = frappe.get_conf()
	bench = os.path.realpath(os.path.join(frappe.local.sites_path, ".."))
	return conf.bench_id or bench.strip("/").replace("/", "-")


def get_sites() -> list[str]:
	folder = Path(getattr(frappe.local, "sites_path", "."))
	return sorted(path.parent.name for path in folder.glob("*/site_config.json"))


def validate_email_address(email_str: str, throw: bool = False) -> str:
	if EMAIL.fullmatch(email_str.strip()):
		return email_str.strip()
	if throw:
		message = frappe._("{0} is not an email address").format(sanitize_html(email_str))
		frappe.throw(message, frappe.InvalidEmailAddressError)
	return ""
