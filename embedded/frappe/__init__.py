"""The part of the Frappe framework that Dartwing Jobs uses, on PostgreSQL, Redis and RQ."""

# ruff: noqa: E402, F401, F403, F405, I001 -- the modules below need the names above them
import importlib
import sys
from types import SimpleNamespace
from typing import Any

from frappe import exceptions
from frappe.exceptions import *
from frappe.types.frappedict import _dict
from frappe.context import *

STANDARD_USERS = ("Guest", "Administrator")
cache = None
db, qb, conf, session, flags = map(local, ("db", "qb", "conf", "session", "flags"))
form_dict, request, response, message_log = map(local, ("form_dict", "request", "response", "message_log"))

from frappe.messages import *
from frappe.messages import _
from frappe.access import *
from frappe.documents import *
from frappe import utils, query_builder, model, permissions, defaults, database
from frappe.utils import redis_wrapper
from frappe.model import create_new, db_query, document, meta, naming
from frappe.permissions import get_roles


def get_request_header(key: str, default: Any = None) -> Any:
	return local.request.headers.get(key, default)


def __getattr__(name: str) -> Any:
	if name == "enqueue":
		return importlib.import_module("frappe.utils.background_jobs").enqueue
	raise exceptions.NotOfferedAttribute(f"frappe.{name}")


def _refuse(fullname: str, path: Any, target: Any = None) -> None:
	if fullname.startswith("frappe."):
		raise exceptions.NotOfferedModule(fullname)


# comes last, so it only sees modules that the embedded site does not have
sys.meta_path.append(SimpleNamespace(find_spec=_refuse))
