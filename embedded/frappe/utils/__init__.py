"""Helpers that apps import from frappe.utils."""

import os
import re
from collections import deque
from collections.abc import Callable
from email.utils import parseaddr

import frappe
from frappe.utils.data import *  # noqa: F403
from frappe.utils.data import cstr

EMAIL = re.compile(r"^[a-z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-z0-9-]+(\.[a-z0-9-]+)*$", re.IGNORECASE)


class CallbackManager:
	def __init__(self) -> None:
		self._functions: deque[Callable] = deque()

	def add(self, func: Callable) -> None:
		self._functions.append(func)

	__call__ = add

	def run(self) -> None:
		while self._functions:
			self._functions.popleft()()

	def reset(self) -> None:
		self._functions.clear()


def random_string(length: int) -> str:
	return frappe.generate_hash(length=length)


def get_traceback(with_context: bool = False) -> str:
	return frappe.get_traceback(with_context)


def get_site_path(*path: str) -> str:
	return frappe.get_site_path(*path)


def get_site_name(hostname: str) -> str:
	return hostname.split(":", 1)[0]


def get_bench_path() -> str:
	sites = getattr(frappe.local, "sites_path", None) or "."
	return os.environ.get("FRAPPE_BENCH_ROOT") or os.path.realpath(os.path.join(sites, ".."))


def get_bench_id() -> str:
	return frappe.get_conf().get("bench_id", get_bench_path().strip("/").replace("/", "-"))


def get_sites(sites_path: str | None = None) -> list[str]:
	folder = sites_path or getattr(frappe.local, "sites_path", None) or "."
	return sorted(
		site for site in os.listdir(folder) if os.path.exists(os.path.join(folder, site, "site_config.json"))
	)


def get_fullname(user: str | None = None) -> str:
	user = user or frappe.session.user
	return frappe.get_cached_value("User", user, "full_name") or user


def split_emails(txt: str | None) -> list[str]:
	return [part.strip() for part in re.split(r"[,;\n]", cstr(txt)) if part.strip()]


def validate_email_address(email_str: str | None, throw: bool = False) -> str:
	found = []
	for part in cstr(email_str).split(","):
		address = "" if " " in part.strip() and "<" not in part else parseaddr(part)[1]
		if EMAIL.match(address):
			found.append(address)
		elif throw:
			message = frappe._("{0} is not an email address").format(frappe.utils.escape_html(part))
			frappe.throw(message, frappe.InvalidEmailAddressError)
	return ", ".join(found)


def update_progress_bar(txt: str, i: int, total: int, absolute: bool = False) -> None:
	"""The embedded site installs in a second; there is nothing to show."""
