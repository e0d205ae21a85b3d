"""The part of the Frappe framework that Dartwing Jobs uses, on PostgreSQL, Redis and RQ."""

# ruff: noqa: E402, F401, F403, F405, I001 -- the modules below need the names above them
import importlib
import sys
from types import SimpleNamespace

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
from frappe.documents import *
from frappe import utils, query_builder, model, permissions, database
from frappe.utils import redis_wrapper
from frappe.model.db_query import get_all, get_list
from frappe.model.document import delete_doc, get_doc, new_doc
from frappe.model.meta import get_meta
from frappe.permissions import get_roles, has_permission


def __getattr__(name: str):
	if name == "enqueue":
		return importlib.import_module("frappe.utils.background_jobs").enqueue
	raise exceptions.NotOfferedAttribute(f"frappe.{name}")


def _refuse(fullname: str, path, target=None) -> None:
	if fullname.startswith("frappe."):
		raise exceptions.NotOfferedModule(fullname)


# comes last, so it only sees modules that the embedded site does not have
sys.meta_path.append(SimpleNamespace(find_spec=_refuse))
