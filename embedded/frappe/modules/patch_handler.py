"""Patches named in each app's patches.txt; each runs once on a site."""

import configparser
from enum import Enum

import frappe


class PatchError(Exception):
	pass


class PatchType(Enum):
	pre_model_sync = "pre_model_sync"
	post_model_sync = "post_model_sync"


def run_all(skip_failing: bool = False, patch_type: PatchType | None = None) -> None:
	for app in frappe.get_installed_apps():
		for patch in get_patches_from_app(app, patch_type):
			try:
				run_single(patch)
			except Exception:
				if not skip_failing:
					raise
				_log(patch, skipped=1, traceback=frappe.get_traceback())


def get_patches_from_app(app: str, patch_type: PatchType | None = None) -> list[str]:
	"""A file without sections is a list of patches that run before the model sync."""
	path = frappe.get_app_path(app, "patches.txt")
	parser = configparser.ConfigParser(allow_no_value=True, delimiters="\n")
	parser.optionxform = str
	try:
		parser.read(path)
	except configparser.MissingSectionHeaderError:
		return frappe.get_file_items(path) if patch_type != PatchType.post_model_sync else []
	wanted = [patch_type] if patch_type else list(PatchType)
	return [patch for kind in wanted if parser.has_section(kind.value) for patch in parser[kind.value]]


def run_single(patchmodule: str, force: bool = False) -> bool:
	"""A patch is known by its whole line, so a changed comment runs it again."""
	if not force and frappe.db.get_value("Patch Log", {"patch": patchmodule, "skipped": 0}):
		return True
	if patchmodule.startswith(("execute:", "finally:")):
		raise frappe.NotOfferedError(f"The patch line {patchmodule}")
	frappe.flags.in_patch = True
	try:
		frappe.get_attr(f"{patchmodule.split(maxsplit=1)[0]}.execute")()
		_log(patchmodule)
	except Exception:
		frappe.db.rollback()
		raise
	finally:
		frappe.flags.in_patch = False
	frappe.db.commit()
	return True


def _log(patch: str, **values: object) -> None:
	frappe.get_doc({"doctype": "Patch Log", "patch": patch, **values}).insert(ignore_permissions=True)
