"""Publishes events on Redis as Frappe does; the embedded site has no server that listens."""

from contextlib import suppress
from typing import Any

import frappe
import redis


def publish_realtime(
	event: str | None = None,
	message: dict | None = None,
	room: str | None = None,
	user: str | None = None,
	doctype: str | None = None,
	docname: str | None = None,
	task_id: str | None = None,
	after_commit: bool = False,
) -> None:
	message = {} if message is None else message
	task_id = task_id or frappe.local.task_id
	event = event or ("task_progress" if task_id else "global")
	if event == "msgprint":
		user = user or frappe.session.user
	elif event == "list_update":
		room = f"doctype:{doctype or message.get('doctype')}"
	if not room and task_id:
		after_commit = False
		message.setdefault("task_id", task_id)
	room = room or _room(task_id, user, doctype, docname)
	if not after_commit:
		emit_via_redis(event, message, room)
	elif [event, message, room] not in _pending():
		_pending().append([event, message, room])


def _room(task_id: str | None, user: str | None, doctype: str | None, docname: str | None) -> str:
	if task_id:
		return f"task_progress:{task_id}"
	if user:
		return f"user:{user}"
	return f"doc:{doctype}/{docname}" if doctype and docname else "all"


def _pending() -> list:
	if not hasattr(frappe.local, "_realtime_log"):
		frappe.local._realtime_log = []
		frappe.db.after_commit.add(_flush)
		frappe.db.after_rollback.add(_take)
	return frappe.local._realtime_log


def _take() -> list:
	pending = getattr(frappe.local, "_realtime_log", [])
	if hasattr(frappe.local, "_realtime_log"):
		del frappe.local._realtime_log
	return pending


def _flush() -> None:
	for event in _take():
		emit_via_redis(*event)


def emit_via_redis(event: str, message: Any, room: str) -> None:
	from frappe.utils.background_jobs import get_redis_conn

	envelope = {"event": event, "message": message, "room": room, "namespace": frappe.local.site}
	with suppress(redis.exceptions.ConnectionError):
		get_redis_conn().publish("events", frappe.as_json(envelope))


def publish_progress(
	percent: float,
	title: str = "Progress",
	doctype: str | None = None,
	docname: str | None = None,
	description: str | None = None,
	task_id: str | None = None,
) -> None:
	message = {"percent": percent, "title": title, "doctype": doctype, "docname": docname}
	where = {"doctype": doctype, "docname": docname, "task_id": task_id}
	user = None if doctype and docname else frappe.session.user
	publish_realtime("progress", message | {"description": description}, user=user, **where)
