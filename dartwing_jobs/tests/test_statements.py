"""The engine's own statements, alone and several in one trip."""

from datetime import timedelta

import frappe
import pytest

from dartwing_jobs.engine import claim, database, order, rows, statements
from dartwing_jobs.tests.test_fairness import WORKERS, Line
from dartwing_jobs.tests.world import make_queue

TABLE = "Job Turnstile"
# a session is told to read backslashes in texts otherwise than before, and again as before
BACKSLASHES = {
	"mariadb": (
		"set @of_test = @@sql_mode, sql_mode = concat(@@sql_mode, ',NO_BACKSLASH_ESCAPES')",
		"set sql_mode = @of_test",
	),
	"postgres": ("set standard_conforming_strings = off", "set standard_conforming_strings = on"),
}
MOMENT = {"mariadb": "datetime(6)", "postgres": "timestamp"}


class Refused(Exception):
	pass


@pytest.fixture(autouse=True)
def nothing_is_kept():
	yield
	frappe.db.rollback()


def row(name) -> dict:
	return {**rows.new("Administrator", frappe.utils.now_datetime()), "name": name}


def there(*names: str) -> list[str]:
	"""Those of these rows that are written."""
	return [name for name in names if frappe.db.exists(TABLE, name)]


@pytest.fixture
def names() -> list[str]:
	return [f"statements-{frappe.generate_hash(length=8)}-{number}" for number in range(4)]


def test_what_is_asked_is_answered_by_name():
	(found,) = statements.fetch("select 1 as one, %s as word, null as nothing", ("it's",))
	assert found == {"one": 1, "word": "it's", "nothing": None}
	assert statements.fetch("select name from `tabDocType` where name = %s", ("nobody",)) == []
	assert statements.value("40 + %s", (2,)) == 42


def test_a_percent_sign_is_one_where_there_are_no_values():
	assert statements.value("'100%'") == "100%"


def test_rows_that_are_there_already_are_left_as_they_are(names):
	assert statements.insert_missing(TABLE, [row(name) for name in names[:2]]) == 2
	assert statements.insert_missing(TABLE, [row(name) for name in names]) == 2
	assert there(*names) == names


def test_an_update_tells_whether_the_row_was_as_expected(names):
	statements.insert(TABLE, [row(names[0])])
	assert statements.update(TABLE, names[0], {"idx": 1}, {"idx": 0})
	assert not statements.update(TABLE, names[0], {"idx": 2}, {"idx": 0})
	assert frappe.db.get_value(TABLE, names[0], "idx") == 1


@pytest.fixture
def trips(monkeypatch) -> list[str]:
	"""What is sent, one by one."""
	real, sent = statements._send, []

	def send(statement: str, values):
		sent.append(statement)
		return real(statement, values)

	monkeypatch.setattr(statements, "_send", send)
	return sent


def test_nothing_is_sent_before_the_trip(names, trips):
	trip = statements.Trip()
	trip.insert(TABLE, [row(names[0])])
	trip.update(TABLE, names[0], {"idx": 7})
	trip.execute(
		f"update `tab{TABLE}` set docstatus = %s where name like '%%%%' and name = %s", (1, names[0])
	)
	trip.execute(f"update `tab{TABLE}` set modified_by = '100%' where name = '{names[0]}'")
	assert trips == []
	trip.send()
	assert len(trips) == (1 if frappe.db.db_type == "mariadb" else 4)
	written = frappe.db.get_value(TABLE, names[0], ["idx", "docstatus", "modified_by"])
	assert written == (7, 1, "100%")


def test_a_percent_sign_is_one_also_on_a_trip_without_values(names):
	statements.insert(TABLE, [row(names[0])])
	trip = statements.Trip()
	for column in ("owner", "modified_by"):
		trip.execute(f"update `tab{TABLE}` set {column} = '100%' where name = '{names[0]}'")
	trip.send()
	assert frappe.db.get_value(TABLE, names[0], ["owner", "modified_by"]) == ("100%", "100%")


def test_an_error_that_has_nothing_to_do_with_the_database_is_told_as_it_is(monkeypatch):
	def fail(*_args) -> None:
		raise Refused("of test")

	trip = statements.Trip()
	for _ in range(2):
		trip.execute("savepoint of_test")
	monkeypatch.setattr(statements, "_send", fail)
	with pytest.raises(Refused, match="of test"):
		trip.send()


def test_what_was_sent_is_not_sent_again(names, trips):
	trip = statements.Trip()
	trip.insert(TABLE, [row(names[0])])
	trip.send()
	trip.send()
	assert len(trips) == 1


def test_an_empty_trip_sends_nothing(trips):
	statements.Trip().send()
	assert trips == []


@pytest.mark.parametrize("others", [0, 1])
def test_a_row_that_is_not_as_expected_ends_the_trip(names, others):
	"""Alone, and among others: nothing behind it is done, and what was before is the caller's to undo."""
	statements.insert(TABLE, [row(names[0])])
	trip = statements.Trip()
	for name in names[1 : 1 + others]:
		trip.insert(TABLE, [row(name)])
	trip.update_or_raise(TABLE, names[0], {"idx": 2}, {"idx": 1}, Refused("of test"))
	for name in names[2 : 2 + others]:
		trip.insert(TABLE, [row(name)])
	with pytest.raises(Refused, match="of test"):
		trip.commit()
	assert there(*names) == names[: 1 + others]
	frappe.db.rollback()
	assert there(*names) == []


def test_it_is_told_which_row_was_not_as_expected(names):
	statements.insert(TABLE, [row(name) for name in names])
	trip = statements.Trip()
	for number, name in enumerate(names):
		trip.update_or_raise(TABLE, name, {"idx": 2}, {"idx": 0 if number < 2 else 1}, Refused(name))
	with pytest.raises(Refused, match=names[2]):
		trip.send()


def test_a_row_that_is_as_expected_lets_the_trip_go_on(names):
	statements.insert(TABLE, [row(names[0])])
	trip = statements.Trip()
	trip.update_or_raise(TABLE, names[0], {"idx": 1}, {"idx": 0}, Refused())
	trip.insert(TABLE, [row(names[1])])
	trip.send()
	assert there(*names) == names[:2]


def test_what_the_database_refuses_is_told_in_its_own_words(names):
	trip = statements.Trip()
	trip.insert(TABLE, [row(names[0])])
	trip.insert(TABLE, [row(names[0])])
	with pytest.raises(Exception, match=names[0]) as refused:
		trip.send()
	assert database.is_refusal(refused.value)


def test_a_trip_commits_what_it_brings_along(names, trips):
	trip = statements.Trip()
	trip.insert(TABLE, [row(name) for name in names[:2]])
	trip.update(TABLE, names[0], {"idx": 1})
	trip.commit()
	assert len(trips) == (1 if frappe.db.db_type == "mariadb" else 2)
	frappe.db.rollback()
	assert there(*names) == names[:2]
	frappe.db.delete(TABLE, {"name": ["in", names]})
	frappe.db.commit()


def test_a_commit_does_what_belongs_before_it_and_leaves_the_rest(names):
	done = []
	frappe.db.before_commit.add(lambda: done.append("before"))
	frappe.db.after_commit.add(lambda: done.append("after"))
	frappe.db.after_rollback.add(lambda: done.append("never"))
	statements.execute(f"update `tab{TABLE}` set idx = 1 where name = %s", (names[0],))
	assert frappe.db.transaction_writes
	statements.commit()
	assert done == ["before"]
	assert not frappe.db.transaction_writes
	database.do_what_waits("of test")
	frappe.db.rollback()
	assert done == ["before", "after"]


@pytest.mark.parametrize("count", [1, 3, 4, 20])
def test_rows_are_written_as_they_are_however_many(names, count):
	"""What all have in common, what differs, what only some have, what is longer than in the first row."""
	moment = frappe.utils.now_datetime()
	new = [
		{
			**row(f"{names[0]}-{number:02d}"),
			"creation": moment,
			"modified": moment + timedelta(microseconds=number),
			"owner": 'it\'s 100% \\ "so" 🎉' + "ä" * number if number % 2 else None,
			"idx": number,
			"docstatus": 1,
		}
		for number in range(count)
	]
	statements.insert(TABLE, new)
	found = statements.fetch(
		f"select {', '.join(new[0])} from `tab{TABLE}` where name like %s order by idx", (f"{names[0]}-%",)
	)
	assert found == new


@pytest.mark.parametrize("digits", range(1, 7))
def test_a_moment_is_packed_with_six_digits(digits):
	"""Python 3.10 reads no other number of them but three."""
	moment = f"cast('2026-01-01 00:00:00.{'123456'[:digits]}' as {MOMENT[frappe.db.db_type]})"
	packed = statements.value(f"(select {statements.packed((), at=statements.written(moment))})")
	assert statements.unpack(packed).at[11:] == f"00:00:00.{'123456'[:digits].ljust(6, '0')}"


@pytest.mark.parametrize("already_started", range(claim.LOW_TURN))
def test_who_stands_far_before_the_last_one_taken_is_not_forgotten(already_started):
	"""Whoever submits in a long transaction gets a place that was near the head when it began."""
	line = Line()
	for _ in range(100 + already_started):
		line.put("a")
	late = line.put("b")
	line.start_many(50 + already_started)
	first = order.band(order.RANKS["Normal"])[0]
	statements.update("Background Job", late, {"line": line.queue, "claim_key": first})
	assert late in [job.name for job in line.start_many(2 + 2 * WORKERS)]


def test_several_queues_take_turns_by_what_they_asked_for_along_with_the_last_job():
	queues = [make_queue(), make_queue()]
	lines = [Line(queue) for queue in queues]
	for line in lines:
		for _ in range(4):
			line.put("a")
	turns, served = claim.Turns(queues), []
	for _ in range(6):
		job = turns.take_next()
		statements.update("Background Job", job.name, order.OUT_OF_LINE)
		served.append(job.job_queue)
	assert served == queues * 3
	urgent = lines[0].put("b", "Critical")
	assert urgent in [turns.take_next().name, turns.take_next().name]


def test_who_comes_after_the_last_look_is_found_in_whatever_queue():
	queues = [make_queue(), make_queue()]
	lines, turns = [Line(queue) for queue in queues], claim.Turns(queues)
	for number in range(2 * claim.LOW_TURN):
		waiting = lines[number % 2].put("a")
		job = turns.take_next()
		assert job.name == waiting
		statements.update("Background Job", job.name, order.OUT_OF_LINE)
		assert turns.take_next() is None


def test_who_is_put_back_in_line_is_not_forgotten_where_two_queues_take_turns():
	"""Each queue is served every other turn: always by those that begin near the last one, or never."""
	queues = [make_queue(), make_queue()]
	lines, turns = [Line(queue) for queue in queues], claim.Turns(queues)
	for line in lines:
		for number in range(120):
			line.put("a", "Low" if number % 4 == 3 else "Normal")
	late = [line.put("b") for line in lines]
	for _ in range(100):
		statements.update("Background Job", turns.take_next().name, order.OUT_OF_LINE)
	first = order.band(order.RANKS["Normal"])[0]
	for line, name in zip(lines, late, strict=True):
		statements.update("Background Job", name, {"line": line.queue, "claim_key": first})
	started = []
	for _ in range(len(queues) * 4):
		started.append(turns.take_next().name)
		statements.update("Background Job", started[-1], order.OUT_OF_LINE)
	assert set(late) <= set(started)


@pytest.mark.parametrize("already_started", range(2 * claim.LOW_TURN))
@pytest.mark.parametrize("where", [0, 1])
def test_the_urgent_are_among_the_next_in_whatever_queue(where, already_started):
	"""Also if the ranks of the queues were asked for just before they came."""
	queues = [make_queue(), make_queue()]
	lines, turns = [Line(queue) for queue in queues], claim.Turns(queues)
	for line in lines:
		for number in range(40):
			line.put("a", "Low" if number % 2 else "Normal")
	for _ in range(already_started):
		statements.update("Background Job", turns.take_next().name, order.OUT_OF_LINE)
	urgent, started = lines[where].put("b", "Critical"), []
	for _ in range(2):
		started.append(turns.take_next().name)
		statements.update("Background Job", started[-1], order.OUT_OF_LINE)
	assert urgent in started


def test_a_number_is_written_as_what_it_is_whatever_equals_it():
	"""A limit takes whole numbers only, and 3.0 == 3."""
	(found,) = statements.fetch("select %s as three", (3.0,))
	assert found.three == 3
	assert len(statements.fetch("select name from `tabDocType` where name <> %s limit %s", ("", 3))) == 3


@pytest.mark.parametrize("text", [r"a\n", "it's", r"\' or 1=1 -- ", "two\nlines"])
def test_a_text_is_written_as_the_server_reads_it_now(text):
	"""A handler may have told its session what a backslash is, and jobs behind it share the session."""
	otherwise, as_before = BACKSLASHES[frappe.db.db_type]
	assert statements.value("%s", (text,)) == text
	frappe.db.sql(otherwise)
	try:
		assert statements.value("%s", (text,)) == text
	finally:
		frappe.db.sql(as_before)
	assert statements.value("%s", (text,)) == text


def test_what_could_not_be_asked_may_be_asked_again():
	statement = "select %s as one from `statements_of_test`"
	for _ in range(2):
		with pytest.raises(Exception, match="statements_of_test"):
			statements.fetch(statement, (1,))
		frappe.db.rollback()
	frappe.db.sql("create temporary table `statements_of_test` (one int)")
	try:
		assert statements.fetch(statement, (1,)) == []
	finally:
		frappe.db.sql("drop table `statements_of_test`")


def test_what_others_ask_afterwards_is_answered():
	statements.fetch("select 1 as one")
	assert list(frappe.db.sql("select 2")) == [(2,)]


def test_an_error_is_the_drivers_own_and_leaves_the_connection_usable():
	with pytest.raises(Exception, match="nowhere") as refused:
		frappe.db.sql("select * from nowhere")
	frappe.db.rollback()
	with pytest.raises(type(refused.value), match="nowhere"):
		statements.fetch("select * from nowhere")
	frappe.db.rollback()
	assert statements.value("1 + 1") == 2


def test_a_connection_that_is_cut_is_known_as_lost():
	with database.beside():
		own = "connection_id()" if frappe.db.db_type == "mariadb" else "pg_backend_pid()"
		cut(statements.value(own))
		with pytest.raises(Exception) as lost:
			statements.fetch("select 1 as one")
		assert database.is_lost_connection(lost.value)


def cut(number: int) -> None:
	end = f"kill {number}" if frappe.db.db_type == "mariadb" else f"select pg_terminate_backend({number})"
	with database.beside():
		frappe.db.sql(end)
