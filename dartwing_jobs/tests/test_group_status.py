"""A group's status follows from its members: the table of docs/groups.md, the code, and the rows agree."""

from pathlib import Path

import frappe
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some

import dartwing_jobs
from dartwing_jobs.engine import statements, states
from dartwing_jobs.engine.groups import ends as group_ends
from dartwing_jobs.engine.groups import statuses

TEXT = (Path(dartwing_jobs.__file__).parents[1] / "docs" / "groups.md").read_text()
ALL = statuses.ENDED | {statuses.QUEUED, statuses.RUNNING}
MEMBERS = some.lists(some.sampled_from(states.ALL), max_size=6)
# a member as it really is: jobs that failed and were tried again, and the last one, which counts
RETRIED = some.lists(
	some.sampled_from([states.FAILED, states.TIMED_OUT, states.DEAD_LETTER, states.CANCELED])
)
LAST = some.sampled_from([word for word in states.ALL if word not in (states.FAILED, states.TIMED_OUT)])
CHAINS = some.lists(some.tuples(RETRIED, LAST).map(lambda pair: [*pair[0][:3], pair[1]]), max_size=5)


def reference(members: list[str]) -> str:
	"""What people expect, said once more: by going through the members, not by counting statuses."""
	left = [member for member in members if member not in ("Completed", "Dead Letter", "Canceled")]
	begun = [member for member in members if member not in ("Pending", "Queued", "Canceled")]
	if left or not members:
		return "Running" if begun else "Queued"
	if all(member == "Completed" for member in members):
		return "Completed"
	if all(member == "Canceled" for member in members):
		return "Canceled"
	return "Partial"


def counted(members: list[str]) -> dict[str, int]:
	return {status: members.count(status) for status in states.ALL}


@given(MEMBERS)
@example([])
def test_the_status_of_any_members(members):
	assert statuses.derived(counted(members)) == reference(members)


@given(MEMBERS)
def test_the_order_of_members_and_how_often_they_come_does_not_matter(members):
	once = {status: 1 for status in members}
	assert statuses.derived(once) == statuses.derived(counted(members))


@given(MEMBERS, some.integers(0, 100))
def test_progress_is_a_percentage_and_whole_only_at_the_end(members, progress):
	counts = counted(members)
	percent = statuses.percent(counts, progress * members.count("Running"))
	assert 0 <= percent <= 100
	if members and all(member in states.TERMINAL for member in members):
		assert percent == 100


@given(CHAINS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_rows_are_judged_by_the_last_job_of_each_chain(site, chains):
	group = frappe.generate_hash(length=10)
	rows = [row for place, chain in enumerate(chains, start=1) for row in _rows(group, place, chain)]
	if rows:
		statements.insert("Background Job", rows)
	members, _progress = group_ends.counts(group)
	frappe.db.rollback()
	lasts = [chain[-1] for chain in chains]
	assert members == {status: count for status, count in counted(lasts).items() if count}
	assert statuses.derived(members) == reference(lasts)


def _rows(group: str, place: int, chain: list[str]) -> list[dict]:
	names = [f"{group}-{place}-{number}" for number in range(len(chain))]
	now = frappe.utils.now()
	fixed = {"creation": now, "modified": now, "job_group": group, "position": place}
	before = [None, *names]
	return [
		{"name": name, "status": status, "retry_of": retry_of, **fixed}
		for name, status, retry_of in zip(names, chain, before, strict=False)
	]


def rows_of_the_table() -> list[list[str]]:
	lines = [line.strip("|").split("|") for line in TEXT.splitlines() if line.startswith("| `")]
	rows = [[cell.strip() for cell in line] for line in lines]
	return [row for row in rows if row[1] in ALL]


@pytest.mark.parametrize("row", rows_of_the_table(), ids=lambda row: row[0])
def test_the_table_in_the_docs_is_the_code(row):
	members = [word.strip() for word in row[0].strip("`").split(",") if word.strip() != "none"]
	assert statuses.derived(counted(members)) == reference(members) == row[1]


def test_the_table_has_every_status():
	written = " ".join(row[0] for row in rows_of_the_table())
	assert all(status in written for status in states.ALL)
	assert {row[1] for row in rows_of_the_table()} == ALL
