"""The part of the Frappe framework that Dartwing Jobs uses, on PostgreSQL, Redis and RQ."""

# ruff: noqa: E402, F401, I001 -- the modules below need the names above them
import importlib
import importlib.abc
import sys
from collections.abc import Sequence
from typing import Any

from frappe import exceptions
from frappe.exceptions import *  # noqa: F403
from frappe.types.frappedict import _dict
from frappe.context import connect, controllers, destroy, get_common_site_config, get_conf, get_file_json
from frappe.context import (
	get_roles,
	get_site_config,
	get_site_path,
	get_system_settings,
	init,
	local,
	set_user,
)

__version__ = "15.45.1"
STANDARD_USERS = ("Guest", "Administrator")
cache = None
log_level = None

db, qb, conf, session, flags, user = map(local, ("db", "qb", "conf", "session", "flags", "user"))
form_dict, request, response, job, lang = map(local, ("form_dict", "request", "response", "job", "lang"))
error_log, debug_log, message_log = map(local, ("error_log", "debug_log", "message_log"))
form = form_dict

from frappe.messages import _, bold, clear_last_message, clear_messages, errprint, get_message_log
from frappe.messages import get_traceback, log, log_error, logger, msgprint, throw
from frappe.registry import call, get_all_apps, get_app_path, get_app_source_path, get_attr, get_doc_hooks
from frappe.registry import get_file_items, get_hooks, get_installed_apps, get_module, get_module_app
from frappe.registry import get_module_list, get_module_path, get_newargs, get_pymodule_path, scrub, unscrub
from frappe.access import allowed_http_methods_for_whitelisted_func, guest_methods, has_permission
from frappe.access import is_table, is_whitelisted, only_for, only_has_select_perm, ping, whitelist
from frappe.access import whitelisted, xss_safe_methods
from frappe.documents import as_json, clear_cache, clear_document_cache, copy_doc, delete_doc
from frappe.documents import delete_doc_if_exists, generate_hash, get_all, get_cached_doc, get_cached_value
from frappe.documents import (
	get_doc,
	get_document_cache_key,
	get_last_doc,
	get_list,
	get_meta,
	get_single,
	get_value,
)
from frappe.documents import new_doc, parse_json
from frappe import utils, query_builder, model, permissions, defaults, database, realtime
from frappe.utils import redis_wrapper
from frappe.model import create_new, db_query, document, meta, naming
from frappe.modules.utils import reload_doc
from frappe.realtime import publish_progress, publish_realtime
from frappe.utils.data import cint, cstr, sbool

ELSEWHERE = {
	"enqueue": "frappe.utils.background_jobs",
	"set_value": "frappe.client",
	"get_user": "frappe.utils.user",
}


def get_request_header(key: str, default: Any = None) -> Any:
	return local.request.headers.get(key, default)


def __getattr__(name: str) -> Any:
	if name in ELSEWHERE:
		return getattr(importlib.import_module(ELSEWHERE[name]), name)
	raise exceptions.NotOfferedAttribute(f"frappe.{name}")


class _NotOfferedFinder(importlib.abc.MetaPathFinder):
	"""Comes last, so it only sees modules that the embedded site does not have."""

	def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> None:
		if fullname.startswith("frappe."):
			raise exceptions.NotOfferedModule(fullname)


sys.meta_path.append(_NotOfferedFinder())
