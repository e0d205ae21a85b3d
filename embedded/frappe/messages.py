"""What is said to people: texts, messages of a request, errors, logs, events."""

import logging
import os
from contextlib import suppress
from sys import exc_info
from traceback import TracebackException as Trace
from typing import NoReturn

import frappe
import redis
from frappe.context import local


def _(msg: str) -> str:
	return msg


def msgprint(msg: str, title: str = "Message", raise_exception=None, **look) -> None:
	look |= {"raise_exception": 1, "indicator": "red"} if raise_exception else {}
	local.message_log.append(frappe._dict(message=msg, title=title, **look))
	if raise_exception:
		raise (frappe.ValidationError if raise_exception is True else raise_exception)(msg)


def throw(msg: str, exc=True, title: str = "Message") -> NoReturn:
	msgprint(msg, title, exc or True)


def clear_messages() -> None:
	local.message_log = []


def get_message_log() -> list[dict]:
	return list(local.message_log)


def get_traceback(with_context: bool = False) -> str:
	return "".join(Trace(*exc_info(), capture_locals=with_context).format()) if exc_info()[0] else ""


def log_error(title: str = "Error", message: str = ""):
	if message and "\n" in title:
		title, message = message, title
	log = {"doctype": "Error Log", "method": title[:140], "error": str(message or get_traceback(True))}
	return frappe.get_doc(log).insert(ignore_permissions=True)


def logger(module: str = "frappe") -> logging.Logger:
	found = logging.getLogger(f"{module}-{getattr(local, 'site', '')}")
	if not found.handlers:
		handler = logging.FileHandler(os.path.join("..", "logs", f"{module}.log"), delay=True)
		handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
		found.addHandler(handler)
		found.propagate = False
	return found


def publish_realtime(
	event: str, message: dict, room=None, user=None, doctype=None, docname=None, after_commit: bool = False
) -> None:
	"""Publishes on Redis as Frappe does; the embedded site has no server that listens."""
	from frappe.utils.background_jobs import get_redis_conn

	found = f"user:{user}" if user else f"doc:{doctype}/{docname}" if doctype and docname else "all"
	room = f"doctype:{message['doctype']}" if event == "list_update" else room or found
	envelope = {"event": event, "message": message, "room": room, "namespace": local.site}

	def emit() -> None:
		with suppress(redis.exceptions.ConnectionError):
			get_redis_conn().publish("events", frappe.as_json(envelope))

	frappe.db.after_commit.add(emit) if after_commit else emit()
