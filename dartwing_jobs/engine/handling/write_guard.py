"""What a handler may write where its category restricts that: the tables of the DocTypes that its type lists.

Every statement of `frappe.db.sql` is looked at before it is sent, which is what documents, the query builder
and `frappe.db.set_value` use. The engine's own statements go through the driver and are free.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps

import frappe

from dartwing_jobs.engine.handling.written_tables import DELETE, INSERT, UPDATE, NotUnderstood, writes_of
from dartwing_jobs.engine.rules import policies
from dartwing_jobs.errors import LeaseLost, WriteNotAllowed

# what Frappe writes beside a document: its number and its history, what is left of it, what went wrong
BOOKKEEPING = {
	"tabSeries": {INSERT, UPDATE},
	"tabVersion": {INSERT},
	"tabDeleted Document": {INSERT},
	"tabComment": {INSERT},  # that a document was deleted
	"tabError Log": {INSERT},
	# what of these belongs to a document goes with it; Frappe does not look first whether there is any
	"tabTag Link": {DELETE},
	"__Auth": {DELETE},
	"__global_search": {DELETE},
}


class Guard:
	"""Watches one connection while one handler runs."""

	def __init__(self, job_type):
		self.job_type = job_type.name
		self.tables = tables_of(writable_doctypes(job_type))
		self.refused: WriteNotAllowed | None = None
		self.is_lifted = False

	def check(self, query: str) -> None:
		try:
			writes = writes_of(query, frappe.db.db_type)
		except NotUnderstood as error:
			self.refuse(f"a statement that may write anything ({error})", error)
		for how, table in writes:
			if table not in self.tables and how not in BOOKKEEPING.get(table, ()):
				self.refuse(f"{how} {table}")

	def refuse(self, what: str, cause: Exception | None = None) -> None:
		text = f"Job Type {self.job_type} may not do this: {what}. DocTypes It May Write does not list it."
		self.refused = self.refused or WriteNotAllowed(text)
		raise self.refused from cause

	def around_sql(self, sql: Callable) -> Callable:
		@wraps(sql)
		def guarded(query, *args, **kwargs):
			if not self.is_lifted and kwargs.get("run", True):
				self.check(str(query))
			return sql(query, *args, **kwargs)

		return guarded

	def around_callbacks(self, callbacks) -> "GuardedCallbacks":
		return GuardedCallbacks(self, callbacks)


class GuardedCallbacks:
	"""Stands in for `frappe.db.after_commit`: what a handler wants done later is guarded then."""

	def __init__(self, guard: Guard, callbacks):
		self.guard, self.callbacks = guard, callbacks
		self.run, self.reset = callbacks.run, callbacks.reset

	def add(self, function: Callable) -> None:
		self.callbacks.add(self.unguarded(function) if self.guard.is_lifted else self.guarded(function))

	__call__ = add

	def unguarded(self, function: Callable) -> Callable:
		"""What the engine wants done later may be done while the handler still runs: at a checkpoint."""

		def call() -> None:
			with lifted():
				function()

		return call

	def guarded(self, function: Callable) -> Callable:
		def call() -> None:
			with in_place_of(frappe.local.db, "sql", self.guard.around_sql):
				function()

		return call


@contextmanager
def guarding(job_type) -> Iterator[None]:
	"""Inside, a handler of this type writes what it may; a refused write ends the job, caught or not."""
	if not policies.category_of(job_type).restricts_writes:
		yield
		return
	guard, db = Guard(job_type), frappe.local.db
	frappe.local.dartwing_write_guard = guard
	try:
		with (
			in_place_of(db, "sql", guard.around_sql),
			in_place_of(db, "before_commit", guard.around_callbacks),
			in_place_of(db, "after_commit", guard.around_callbacks),
		):
			yield
	except LeaseLost:
		raise  # nothing of it is kept, and it is not this worker's job any more
	except Exception as error:
		if guard.refused and error is not guard.refused:
			raise guard.refused from error
		raise
	finally:
		frappe.local.dartwing_write_guard = None
	if guard.refused:
		raise guard.refused


@contextmanager
def lifted() -> Iterator[None]:
	"""For what the engine itself does on behalf of a handler."""
	guard = getattr(frappe.local, "dartwing_write_guard", None)
	if guard is None or guard.is_lifted:
		yield
		return
	guard.is_lifted = True
	try:
		yield
	finally:
		guard.is_lifted = False


def writable_doctypes(job_type) -> list[str]:
	lines = (job_type.writable_doctypes or "").splitlines()
	return [line.strip() for line in lines if line.strip()]


def tables_of(doctypes: list[str]) -> set[str]:
	"""Their tables and those of their child rows. Single DocTypes share one table."""
	metas = [frappe.get_meta(doctype) for doctype in doctypes if frappe.db.exists("DocType", doctype)]
	names = {meta.name for meta in metas if not meta.issingle}
	names |= {field.options for meta in metas for field in meta.get_table_fields()}
	return {f"tab{name}" for name in names} | {"tabSingles" for meta in metas if meta.issingle}


class in_place_of:
	"""Inside, a wrapper stands over something that one object has. A class: each job enters several."""

	def __init__(self, owner, name: str, around: Callable[[Callable], Callable]):
		self.owner, self.name, self.around = owner, name, around

	def __enter__(self) -> None:
		self.own = vars(self.owner).get(self.name)  # another wrapper, such as the recorder's
		setattr(self.owner, self.name, self.around(getattr(self.owner, self.name)))

	def __exit__(self, *_error) -> None:
		if self.own is None:
			delattr(self.owner, self.name)
		else:
			setattr(self.owner, self.name, self.own)
