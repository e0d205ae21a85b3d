"""frappe.db and frappe.qb."""

import frappe
import pytest
from frappe.query_builder.functions import Count
from parity_site import SETTINGS, THING, clean, doctypes, thing

__all__ = ["clean", "doctypes"]
pytestmark = pytest.mark.usefixtures("clean")


def names(**filters):
	return {row[0] for row in frappe.db.get_values(THING, filters, "title")}


def test_get_value_shapes():
	doc = thing(title="T", count=3).insert()
	assert frappe.db.get_value(THING, doc.name) == doc.name
	assert frappe.db.get_value(THING, doc.name, "count") == 3
	assert tuple(frappe.db.get_value(THING, doc.name, ["title", "count"])) == ("T", 3)
	assert frappe.db.get_value(THING, doc.name, ["title"], as_dict=True) == {"title": "T"}
	assert frappe.db.get_value(THING, doc.name, "*").title == "T"
	assert frappe.db.get_value(THING, "nothing", "title") is None
	assert frappe.db.get_value(THING, {"title": "T"}, "count") == 3


def test_exists_returns_the_name():
	doc = thing(code="there").insert()
	assert frappe.db.exists(THING, doc.name) == doc.name
	assert frappe.db.exists(THING, {"code": "there"}) == doc.name
	assert frappe.db.exists({"doctype": THING, "code": "there"}) == doc.name
	assert frappe.db.exists(THING, "nothing") is None
	assert frappe.db.exists(SETTINGS, SETTINGS) == SETTINGS


def test_null_never_matches_in_plain_sql():
	thing(title="null").insert()
	thing(title="early", due="2020-01-01 00:00:00").insert()
	assert names(due=["<=", "2021-01-01"]) == {"early"}
	assert names(due=["!=", "2020-01-01 00:00:00"]) == set()
	assert names(due=None) == {"null"}
	assert names(due=["is", "set"]) == {"early"}
	assert names(due=["is", "not set"]) == {"null"}


def test_filter_operators():
	for title, count in (("a", 1), ("b", 2), ("c", 3)):
		thing(title=title, count=count).insert()
	assert names(count=[">", 1]) == {"b", "c"}
	assert names(count=["between", [1, 2]]) == {"a", "b"}
	assert names(title=["in", ["a", "c"]]) == {"a", "c"}
	assert names(title=["not in", ["a"]]) == {"b", "c"}
	assert names(title=["like", "a%"]) == {"a"}
	assert {r[0] for r in frappe.db.get_values(THING, [["count", ">=", 2]], "title")} == {"b", "c"}
	assert frappe.db.count(THING, {"count": ["<", 3]}) == 2
	assert frappe.db.count(THING, {"title": ["in", []]}) == 0


def test_set_value_changes_modified_and_nothing_else():
	doc = thing().insert()
	assert frappe.db.set_value(THING, doc.name, {"notes": "n", "count": -5}) is None
	stored = frappe.db.get_value(THING, doc.name, ["notes", "count", "modified"], as_dict=True)
	assert (stored.notes, stored.count) == ("n", -5)
	assert str(stored.modified) != doc.modified
	frappe.db.set_value(THING, doc.name, "notes", "m", update_modified=False)
	assert frappe.db.get_value(THING, doc.name, "modified") == stored.modified


def test_set_value_with_filters_changes_many():
	first, second = thing(count=1).insert(), thing(count=1).insert()
	frappe.db.set_value(THING, {"count": 1}, "notes", "both")
	assert {frappe.db.get_value(THING, d.name, "notes") for d in (first, second)} == {"both"}


def test_delete_by_filters():
	thing(title="gone").insert()
	thing(title="stays").insert()
	frappe.db.delete(THING, {"title": "gone"})
	assert names() == {"stays"}


def test_sql_shapes_and_parameters():
	doc = thing(title="It's 100% = 5", count=4).insert()
	query = f"select name, title from `tab{THING}` where title = %s"
	assert frappe.db.sql(query, doc.title)[0][1] == doc.title
	assert frappe.db.sql(query, (doc.title,), as_dict=True) == [{"name": doc.name, "title": doc.title}]
	assert frappe.db.sql(query, (doc.title,), as_list=True) == [[doc.name, doc.title]]
	assert frappe.db.sql(query, (doc.title,), pluck=True) == [doc.name]
	named = f"select ifnull(notes, 'none') from `tab{THING}` where count = %(count)s and name in %(names)s"
	assert frappe.db.sql(named, {"count": 4, "names": (doc.name, "x")})[0][0] == "none"
	assert not frappe.db.sql(f"update `tab{THING}` set count = 5 where name = %s", doc.name)
	assert frappe.db._cursor.rowcount == 1


def test_query_builder():
	for title in ("q1", "q2"):
		thing(title=title, notes="it's = 5 `x`").insert()
	table = frappe.qb.DocType(THING)
	query = frappe.qb.from_(table).select(table.title, table.notes).where(table.title.like("q%"))
	rows = query.orderby(table.title).run(as_dict=True)
	assert [(r.title, r.notes) for r in rows] == [("q1", "it's = 5 `x`"), ("q2", "it's = 5 `x`")]
	assert frappe.qb.from_(table).select(Count("*")).where(table.title == "q1").run()[0][0] == 1
	frappe.qb.update(table).set(table.count, table.count + 2).where(table.title == "q1").run()
	assert frappe.db._cursor.rowcount == 1
	assert frappe.qb.from_(table).select(table.count).orderby(table.title).run(pluck=True) == [2, 0]
	frappe.qb.from_(table).where(table.title == "q2").delete().run()
	assert names() == {"q1"}


def test_locking_reads():
	doc = thing().insert()
	assert frappe.db.get_value(THING, doc.name, "title", for_update=True) == "A thing"
	rows = frappe.db.get_values(THING, {"name": doc.name}, "name", for_update=True, skip_locked=True)
	assert rows[0][0] == doc.name
	assert frappe.db.get_value(THING, doc.name, for_update=True, wait=False) == doc.name


def test_savepoints():
	frappe.db.savepoint("here")
	thing(title="undone").insert()
	frappe.db.rollback(save_point="here")
	assert names() == set()
	frappe.db.savepoint("there")
	thing(title="kept").insert()
	frappe.db.release_savepoint("there")
	assert names() == {"kept"}


def test_callbacks_of_a_commit():
	seen = []
	frappe.db.before_commit.add(lambda: seen.append("before"))
	frappe.db.after_commit.add(lambda: seen.append("after 1"))
	frappe.db.after_commit.add(lambda: seen.append("after 2"))
	frappe.db.after_rollback.add(lambda: seen.append("rollback"))
	frappe.db.commit()
	assert seen == ["before", "after 1", "after 2"]
	frappe.db.rollback()
	assert "rollback" not in seen


def test_callbacks_of_a_rollback():
	seen = []
	frappe.db.after_commit.add(lambda: seen.append("commit"))
	frappe.db.before_rollback.add(lambda: seen.append("before"))
	frappe.db.after_rollback.add(lambda: seen.append("after"))
	frappe.db.rollback()
	frappe.db.commit()
	assert seen == ["before", "after"]


def test_a_rolled_back_savepoint_keeps_its_callbacks():
	seen = []
	frappe.db.savepoint("here")
	frappe.db.after_commit.add(lambda: seen.append("commit"))
	frappe.db.rollback(save_point="here")
	frappe.db.commit()
	assert seen == ["commit"]


def test_schema_questions():
	assert frappe.db.table_exists(THING)
	assert not frappe.db.table_exists("Parity Nothing")
	assert frappe.db.has_column(THING, "due")
	assert not frappe.db.has_column(THING, "nothing")
	assert {"name", "owner", "title"} <= set(frappe.db.get_table_columns(THING))


def test_indexes():
	frappe.db.add_index(THING, ["status", "due"], "parity_thing_status_due")
	frappe.db.add_index(THING, ["status", "due"], "parity_thing_status_due")
	assert frappe.db.has_index(f"tab{THING}", "parity_thing_status_due")
	assert not frappe.db.has_index(f"tab{THING}", "parity_thing_nothing")


def test_raw_bulk_insert():
	rows = [("raw-1", "one"), ("raw-2", "it's")]
	frappe.db.bulk_insert(THING, ["name", "title"], rows)
	frappe.db.bulk_insert(THING, ["name", "title"], rows, ignore_duplicates=True)
	assert names(name=["like", "raw-%"]) == {"one", "it's"}


def test_write_counter():
	frappe.db.commit()
	assert frappe.db.transaction_writes == 0
	thing().insert()
	assert frappe.db.transaction_writes > 0


def test_sequence():
	frappe.db.create_sequence("Parity Sequence", check_not_exists=True)
	first = frappe.db.get_next_sequence_val("Parity Sequence")
	assert frappe.db.get_next_sequence_val("Parity Sequence") == first + 1
	frappe.db.sql_ddl("drop sequence parity_sequence_id_seq")


def test_escape_and_globals():
	assert frappe.db.sql(f"select {frappe.db.escape(chr(39) + 'x', percent=False)}")[0][0] == "'x"
	frappe.db.set_global("parity_key", "v")
	assert frappe.db.get_global("parity_key") == "v"
