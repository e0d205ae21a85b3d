"""Helpers that apps import from frappe.utils."""

from collections import deque
from pathlib import Path

import frappe
from frappe.utils.data import *  # noqa: F403


class CallbackManager:
	def __init__(self) -> None:
		self._functions = deque()
		self.add, self.reset = self._functions.append, self._functions.clear

	def run(self) -> None:
		while self._functions:
			self._functions.popleft()()


def get_sites() -> list[str]:
	folder = Path(getattr(frappe.local, "sites_path", "."))
	return sorted(path.parent.name for path in folder.glob("*/site_config.json"))
