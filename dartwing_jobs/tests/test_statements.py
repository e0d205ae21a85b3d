"""Statements that travel together: what they promise, ask and stop for. Nothing here is committed."""

import frappe
import pytest

from dartwing_jobs.engine import claim, naming, order, rows, sending, statements
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


def test_what_hardly_ever_is_so_ends_no_trip(names):
	with statements.in_one_go():
		statements.insert(TABLE, [row(names[0])])
		statements.if_ever("1 = 2", (), pytest.fail)
		statements.insert(TABLE, [row(names[1])])
	assert there(*names) == names[:2]


def test_if_it_is_so_what_follows_waits_for_what_is_done_about_it(names):
	seen = []

	def see() -> None:
		seen.append(there(*names))
		statements.insert(TABLE, [row(names[2])])

	with statements.in_one_go():
		statements.insert(TABLE, [row(names[0])])
		statements.if_ever("1 = %s", (1,), see)
		statements.insert(TABLE, [row(names[1])])
		statements.insert_last(TABLE, [row(names[3])])
	assert seen == [names[:1]]
	assert there(*names) == names


@pytest.mark.parametrize("digits", range(1, 7))
def test_a_moment_is_packed_with_six_digits(digits):
	"""Python 3.10 reads no other number of them but three."""
	moment = f"cast('2026-01-01 00:00:00.{'123456'[:digits]}' as {MOMENT[frappe.db.db_type]})"
	packed = statements.value(f"(select {statements.packed((), at=statements.written(moment))})")
	assert statements.unpack(packed).at[11:] == f"00:00:00.{'123456'[:digits].ljust(6, '0')}"


def test_it_may_be_so_more_than_once(names):
	calls = []
	with statements.in_one_go():
		statements.value_later("40 + %s", (2,), calls.append)
		statements.if_ever("1 = 1", (), lambda: calls.append("first"))
		statements.insert(TABLE, [row(names[0])])
		statements.if_ever("2 = 2", (), lambda: calls.append("second"))
		statements.insert(TABLE, [row(names[1])])
	assert calls == [42, "first", "second"]
	assert there(*names) == names[:2]


def test_who_refuses_then_stops_what_follows(names):
	def refuse() -> None:
		raise Refused

	with pytest.raises(Refused), statements.in_one_go():
		statements.insert(TABLE, [row(names[0])])
		statements.if_ever("1 = 1", (), refuse)
		statements.insert(TABLE, [row(names[1])])
		statements.commit()
	assert there(*names) == names[:1]
	frappe.db.rollback()
	assert there(*names) == []


def test_outside_of_a_trip_it_is_asked_at_once():
	calls = []
	statements.if_ever("1 = 1", (), lambda: calls.append("now"))
	statements.if_ever("1 = 2", (), lambda: calls.append("never"))
	assert calls == ["now"]


def test_a_promise_is_written_before_anybody_knows_it(names):
	known = []
	with statements.in_one_go():
		promised = statements.promise("of_test", "concat(%s, '-0')", (names[0][:-2],), known.append)
		statements.arrive_if_asked()
		statements.insert(TABLE, [row(promised or known[0])])
		statements.arrive()
	assert known == names[:1]
	assert there(*names) == names[:1]


def test_what_is_written_out_once_is_not_remembered(names):
	"""Rows that may be missing are many, and no two of their statements are the same."""
	assert statements.insert_missing(TABLE, [row(name) for name in names]) == 4
	assert statements.insert_missing(TABLE, [row(name) for name in names]) == 0
	known = sending._plan.cache_info().misses
	statements.insert_missing(TABLE, [row(f"{name}-again") for name in names])
	assert sending._plan.cache_info().misses == known


def test_a_promised_name_is_like_one_that_is_drawn():
	names = []
	with statements.in_one_go():
		naming.promise_job_name(names.append)
	(drawn,) = naming.next_job_names(1)
	prefix, number = names[0].rsplit("-", 1)
	assert drawn == f"{prefix}-{int(number) + 1:05d}"


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


def test_what_could_not_be_prepared_is_not_taken_for_prepared():
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


def test_a_promise_is_known_as_it_was_kept_also_behind_what_hardly_ever_is_so(names):
	"""Whoever asks in between sends what waits, and the promise is handed over later."""
	known = []
	with statements.in_one_go():
		statements.if_ever("1 = 1", (), lambda: statements.insert(TABLE, [row(names[1])]))
		statements.insert(TABLE, [row(names[2])])
		promised = statements.promise("behind", "concat(%s, '-0')", (names[0][:-2],), known.append)
		statements.arrive_if_asked()
		statements.insert_last(TABLE, [row(promised or known[0])])
		statements.fetch("select 1 as one")
	assert known == names[:1]
	assert there(*names) == names[:3]
