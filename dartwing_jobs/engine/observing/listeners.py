"""Tells other people's code about moves: doc_events of apps, Notifications, Webhooks, Server Scripts.

The engine writes by plain statements, which no document event sees. So after the commit of a move, and only
where somebody listens, the job is loaded and its update events are run as if it had been saved.
"""

import time
from typing import NamedTuple

import frappe

from dartwing_jobs.engine import afterwards, database, statements
from dartwing_jobs.engine.observing import reports

EVENTS = ("on_update", "on_change")
# what Frappe itself hooks to all documents is about saving forms, and every site has it
FRAPPE = "frappe."
# tables that may hold listeners: the column that names the DocType, the column that says whether it is on
TABLES = {
	"Notification": ("document_type", {"enabled": 1}),
	"Webhook": ("webhook_doctype", {"enabled": 1}),
	"Server Script": ("reference_doctype", {"disabled": 0}),
}
LOOK_SECONDS = 5
# moves that the process which made them announces; a worker tells the rest, so many with each message
MOST_TOLD_AT_ONCE = 500
TELL_REST = "dartwing_jobs.engine.observing.listeners.tell_rest"
_known: dict[str, tuple[float, bool]] = {}


class Move(NamedTuple):
	job_name: str
	from_status: str | None
	to_status: str


def tell_after_commit(job_name: str, from_status: str | None, to_status: str) -> None:
	"""Runs the events of a move once it is committed; costs next to nothing where nobody listens."""
	if somebody_listens():
		afterwards.gather(tell, Move(job_name, from_status, to_status))


def tell(moves: list[Move]) -> None:
	"""Of very many, the caller waits for the first ones only."""
	for move in moves[:MOST_TOLD_AT_ONCE]:
		_tell(*move)
	for start in range(MOST_TOLD_AT_ONCE, len(moves), MOST_TOLD_AT_ONCE):
		rest = moves[start : start + MOST_TOLD_AT_ONCE]
		frappe.enqueue(TELL_REST, queue="short", moves=[list(move) for move in rest])


@reports.masked
def tell_rest(moves: list) -> None:
	"""By a worker of the bench."""
	for move in moves:
		_tell(*move)


def somebody_listens() -> bool:
	"""Looked up every few seconds per process: a listener may be added at any time, but moves are many."""
	site = frappe.local.site
	looked_at, listens = _known.get(site, (0.0, False))
	if time.monotonic() - looked_at > LOOK_SECONDS:
		listens = _app_listens() or any(map(_table_listens, TABLES))
		_known[site] = time.monotonic(), listens
	return listens


def forget() -> None:
	"""A listener was added or removed here: the next move looks again."""
	_known.pop(frappe.local.site, None)


def _app_listens() -> bool:
	hooked = frappe.get_hooks("doc_events")
	return any(
		not path.startswith(FRAPPE)
		for doctype in ("Background Job", "*")
		for event, paths in (hooked.get(doctype) or {}).items()
		if event in (*EVENTS, "after_insert")
		for path in (paths if isinstance(paths, list) else [paths])
	)


def _table_listens(doctype: str) -> bool:
	if not frappe.db.table_exists(doctype):
		return False
	column, switched_on = TABLES[doctype]
	return bool(frappe.db.exists(doctype, {column: "Background Job", **switched_on}))


def _tell(job_name: str, from_status: str | None, to_status: str) -> None:
	"""In a transaction of its own: a listener that fails takes nothing back; the Error Log tells."""
	earlier = database.waiting_for_commit()
	try:
		job = frappe.get_doc("Background Job", job_name)
		job.status = to_status  # it may have moved on in the same transaction: each move is told as it was
		_run_events(job, from_status)
		statements.commit()  # what listeners wrote; the move itself was committed before
	except Exception as error:
		database.rollback_all_but(earlier)
		database.report(f"A listener to {job_name} failed", error)
	database.do_what_waits(f"After the listeners to {job_name}")


def _run_events(job, from_status: str | None) -> None:
	if from_status is None:
		job.run_method("after_insert")
	else:
		job._doc_before_save = frappe.get_doc("Background Job", job.name)
		job._doc_before_save.status = from_status
	for event in EVENTS:
		job.run_method(event)
