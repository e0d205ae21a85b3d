"""How the engine is doing, in figures: what waits and runs now, and how attempts of the last hours went."""

from datetime import datetime

import frappe
from frappe import _

from dartwing_jobs import clock, tenancy
from dartwing_jobs.engine import naming, statements, states
from dartwing_jobs.engine.observing import gauges
from dartwing_jobs.engine.rules import job_types
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.messages import throw

WINDOW_HOURS = 24
MOST_HOURS = 24 * 31
PERCENTILE = 0.95
# history has no end: no status is counted further, and no more than the newest runs are read
MOST_COUNTED, MOST_RUNS = 10_000, 50_000
# names of runs begin with the microsecond in which they started: the window is a piece of the primary key
STARTED = "name >= %s and status <> 'Running'"
# durations that differ by less than a twentieth are one group: a percentile costs one look at each run
GROUPED_DURATION = "floor(20 * ln(greatest(duration_seconds, 0.000001)))"
ENDED_BADLY = "sum(case when error_type in ('Transient', 'Permanent') then 1 else 0 end)"


def get_job_metrics(
	organization: str | None = None, hours: float = WINDOW_HOURS, user: str | None = None
) -> dict:
	"""The figures that a user may see: of one organization, or of all that are open to them."""
	if not 0 < hours <= MOST_HOURS:
		throw(_("Hours must be between 0 and {0}.").format(MOST_HOURS), InvalidJobError)
	organizations = organizations_shown_to(user or frappe.session.user, organization)
	first = naming.first_row_name_of_the_last(hours * 3600)
	runs = _runs(organizations, first)
	return {
		"as_of": clock.now(),
		"hours": hours,
		"statuses": _by_status(organizations),
		"counted_up_to": MOST_COUNTED,
		"queues": _queues(organizations, clock.now()),
		"types": _by(runs, "job_type"),
		"organizations": _by(runs, "organization"),
		"runs_are_partial": _has_more_runs(first),
		"workers_alive": gauges.workers_alive(),
		"seconds_since_sweep": gauges.seconds_since_sweep(),
	}


def organizations_shown_to(user: str, organization: str | None) -> list[str] | None:
	"""The organizations whose figures somebody may see; None for all of the site."""
	if tenancy.is_unrestricted(user):
		return [organization] if organization else None
	permitted = tenancy.permitted_organizations(user, "Background Job")
	is_admin = tenancy.ADMIN_ROLE in frappe.get_roles(user)
	if not is_admin or (organization and organization not in permitted):
		throw(_("You may not see these figures."), frappe.PermissionError)
	return [organization] if organization else permitted


def _by_status(organizations: list[str] | None) -> dict[str, int]:
	"""Counted by organization or, for the whole site, by type: there is an index for each."""
	column, whose = "organization", organizations
	if organizations is None:
		column, whose = "job_type", job_types.with_jobs()
	counts = dict.fromkeys(states.ALL, 0)
	for name in whose:
		for status, more in _count(column, name, counts).items():
			counts[status] += more
	return counts


def _count(column: str, name: str, counted: dict[str, int]) -> dict[str, int]:
	"""How many more are in each status, up to what is to be counted."""
	some = f"select 1 from `tabBackground Job` where {column} = %s and status = %s limit %s"
	places = range(len(counted))
	columns = ", ".join(f"(select count(*) from ({some}) some{place}) as jobs{place}" for place in places)
	values = [value for status in counted for value in (name, status, MOST_COUNTED - counted[status])]
	(row,) = statements.fetch(f"select {columns}", values)
	return dict(zip(counted, row.values(), strict=True))


def _queues(organizations: list[str] | None, now: datetime) -> list[dict]:
	waiting, running = gauges.waiting(organizations), gauges.running(organizations)
	held = gauges.held(organizations)
	oldest = gauges.oldest_waiting(now, organizations)
	return [
		{
			"queue": queue.name,
			"waiting": sum(waiting.get(queue.name, {}).values()),
			"waiting_by_priority": waiting.get(queue.name, {}),
			"held": held[queue.name],
			"running": running.get(queue.name, 0),
			"oldest_waiting_seconds": oldest.get(queue.name, 0.0),
			"max_wait_seconds": queue.max_wait_seconds,
			"is_late": 0 < queue.max_wait_seconds < oldest.get(queue.name, 0.0),
		}
		for queue in gauges.queues()
	]


def _runs(organizations: list[str] | None, first: str) -> list:
	"""Attempts that have ended, in groups of one type, one organization and about the same duration."""
	whose, values = gauges.of_organizations(organizations)
	return statements.fetch(
		f"""select job_type, organization, {GROUPED_DURATION} as about, count(*) as runs,
		{ENDED_BADLY} as failed, sum(duration_seconds) as seconds, max(duration_seconds) as longest,
		sum(cost_cents) as cost_cents
		from (select job_type, organization, duration_seconds, error_type, cost_cents from `tabJob Run`
			where {STARTED} order by name desc limit {MOST_RUNS}) newest
		where 1 = 1{whose} group by job_type, organization, about""",
		[first, *values],
	)


def _has_more_runs(first: str) -> bool:
	newest = f"select 1 from `tabJob Run` where {STARTED} limit {MOST_RUNS + 1}"
	return statements.value(f"(select count(*) from ({newest}) newest)", (first,)) > MOST_RUNS


def _by(runs: list, field: str) -> list[dict]:
	groups: dict[str, list] = {}
	for row in runs:
		groups.setdefault(row[field], []).append(row)
	return [{field: name, **_figures(groups[name])} for name in sorted(groups, key=str)]


def _figures(rows: list) -> dict:
	runs, failed = sum(row.runs for row in rows), int(sum(row.failed for row in rows))
	return {
		"runs": runs,
		"failed": failed,
		"failure_rate": failed / runs,
		"average_seconds": float(sum(row.seconds for row in rows)) / runs,
		"p95_seconds": _percentile(rows, runs),
		"cost_cents": int(sum(row.cost_cents or 0 for row in rows)),
	}


def _percentile(rows: list, runs: int) -> float:
	"""The longest of the group in which the percentile lies: too long by a twentieth at most."""
	seen = 0
	for row in sorted(rows, key=lambda row: row.longest):
		seen += row.runs
		if seen >= PERCENTILE * runs:
			break
	return float(row.longest)
