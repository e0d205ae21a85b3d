"""A clean Frappe for each job in a process that runs many: nothing of the one before is left."""

import contextlib
import pickle
from collections.abc import Iterator

import frappe

from dartwing_jobs.engine import database
from dartwing_jobs.errors import FrappeEnded

# what belongs to the worker's message around all the jobs, and is kept
KEPT = ("db", "job")
_clean: dict[str, "CleanState"] = {}


def become(user: str) -> None:
	"""New flags, messages, caches and user, on the connection that is open already.

	As `frappe.init` leaves it: once by that, and from memory afterwards, in a tenth of the time.
	"""
	local, site = frappe.local, frappe.local.site
	local.db.value_cache.clear()
	if site not in _clean:
		kept = {name: getattr(local, name) for name in KEPT if hasattr(local, name)}
		_clean[site] = CleanState(site, local.sites_path)
		for name, value in kept.items():
			setattr(local, name, value)
	_clean[site].restore()
	frappe.set_user(user)


@contextlib.contextmanager
def kept() -> Iterator[None]:
	"""Inside, a handler may end Frappe, turn to another site or connect anew: the engine still has its own
	afterwards. What the handler wrote may not be on the connection that would record its end."""
	local = frappe.local
	site, sites_path, db, job = local.site, local.sites_path, local.db, getattr(local, "job", None)
	try:
		yield
	finally:
		did = _what_was_done_to(site, db)
		if did:
			with contextlib.suppress(Exception):  # it may be closed already
				db.close()
			_begin_again(site, sites_path, job)
	if did:
		raise FrappeEnded(f"The handler has {did}: what it wrote is lost. Leave Frappe to the worker.")


def _what_was_done_to(site: str, db) -> str | None:
	found, connected = getattr(frappe.local, "site", None), getattr(frappe.local, "db", None)
	if found and found != site:
		return f"turned to the site {found}"
	if not (found and connected):
		return "called frappe.destroy"
	return None if connected is db else "connected anew"


def _begin_again(site: str, sites_path: str, job) -> None:
	"""On a new connection: what was written on the old one is thrown away."""
	if getattr(frappe.local, "db", None):
		frappe.local.db.close()
	frappe.init(site, sites_path=sites_path, force=True)
	if job is not None:
		frappe.local.job = job
	frappe.connect()
	database.read_committed()


class CleanState:
	"""What `frappe.init` sets for a site: things that nobody changes, and those that somebody might."""

	def __init__(self, site: str, sites_path: str):
		for name, _value in list(frappe.local):
			delattr(frappe.local, name)
		frappe.init(site, sites_path=sites_path, force=True)
		initial = {name: value for name, value in frappe.local if name not in KEPT}
		copies = {name: pickle.dumps(value) for name, value in initial.items() if _may_change(value)}
		frappe.set_user("Administrator")
		# what comes with each user is not worth restoring before
		lasting = {name for name, value in frappe.local if name in initial and initial[name] is value}
		self.fixed = {name: initial[name] for name in lasting - copies.keys()}
		self.copies = {name: copies[name] for name in lasting & copies.keys()}
		self.originals = {name: pickle.loads(copy) for name, copy in self.copies.items()}
		self.known = {*initial, *KEPT}

	def restore(self) -> None:
		"""Sets only what differs: each assignment to `frappe.local` copies all of it."""
		found = dict(iter(frappe.local))
		for name in found.keys() - self.known:
			delattr(frappe.local, name)
		for name, value in self.fixed.items():
			if name not in found or found[name] is not value:
				setattr(frappe.local, name, value)
		for name, value in self.originals.items():
			if name not in found or type(found[name]) is not type(value) or found[name] != value:
				setattr(frappe.local, name, pickle.loads(self.copies[name]))


def _may_change(value) -> bool:
	return isinstance(value, dict | list | set)
