"""Somebody reads for hours, as backups do: the server keeps all that was changed since, and workers go on."""

from contextlib import contextmanager

import frappe

from dartwing_jobs.engine import claim, database, order, statements
from dartwing_jobs.engine.submit import submit_many
from dartwing_jobs.tests.world import REPEATABLE, make_queue

TAKEN = 400
# that a claim may look at, however many were taken before; PostgreSQL looks at each until it has removed it
PAGES = {"mariadb": 200, "postgres": 5 * TAKEN}


def test_a_claim_does_not_walk_over_those_who_were_taken(world):
	queue = make_queue()
	frappe.db.commit()
	database.read_committed()
	with old_snapshot():
		names = submit_many(REPEATABLE, [{}] * (TAKEN + 2), world.a, job_queue=queue)
		frappe.db.commit()
		for name in names[:TAKEN]:
			statements.update("Background Job", name, order.OUT_OF_LINE)
		frappe.db.commit()
		claim.Turns([queue]).take_next()  # what a connection does once, it has done now
		frappe.db.rollback()
		assert pages_of(lambda: claim.Turns([queue]).take_next()) <= PAGES[frappe.db.db_type]
	frappe.db.rollback()


@contextmanager
def old_snapshot():
	own = frappe.local.db
	frappe.connect(set_admin_as_user=False)
	reading, frappe.local.db = frappe.local.db, own
	reading.sql("select count(*) from `tabBackground Job`")  # and from here on sees nothing newer
	try:
		yield
	finally:
		reading.close()


def pages_of(question) -> int:
	"""How many pages the server looks at for an answer; its answer about that costs some, too."""
	before = _pages()
	between = _pages()
	question()
	return _pages() - between - (between - before)


def _pages() -> int:
	if frappe.db.db_type == "mariadb":
		(row,) = statements.fetch("show global status like 'Innodb_buffer_pool_read_requests'")
		return int(row.Value)
	statements.execute("select pg_stat_force_next_flush()")
	frappe.db.rollback()
	(row,) = statements.fetch(
		"select blks_hit + blks_read as pages from pg_stat_database where datname = current_database()"
	)
	return int(row.pages)
