"""What a fire does when a job of the same schedule is not finished yet: the overlap policies."""

from dartwing_jobs.engine import statements, states, successors
from dartwing_jobs.engine.schedules.fires import FIRED, FORCED, SKIPPED, Fire

ALLOW, QUEUE_ONE = "Allow", "Queue One"
# so many jobs of a schedule are looked at, the last ones: under a policy that limits them older ones are over
LOOK_BACK = 20
# so many schedules are asked for by one statement
AT_ONCE = 50
LAST_JOBS = f"""(select job_schedule, background_job from `tabJob Schedule Fire`
	where job_schedule = %s and outcome = %s order by fire_at desc limit {LOOK_BACK})"""


def is_limited(schedule) -> bool:
	return (schedule.overlap_policy or ALLOW) != ALLOW


def first_without_others(fired: list[Fire]) -> list[Fire]:
	"""The first fire of each limited schedule that has no unfinished job: nothing can be in its way."""
	first = {fire.schedule.name: fire for fire in reversed(fired) if is_limited(fire.schedule)}
	names = list(first)
	for start in range(0, len(names), AT_ONCE):
		for name in _with_active_jobs(names[start : start + AT_ONCE]):
			del first[name]
	return [fire for fire in fired if first.get(fire.schedule.name) is fire]


def _with_active_jobs(schedules: list[str]) -> list[str]:
	"""Those of some schedules that have a job which may still run, or whose successor may."""
	asked = [(schedule, outcome) for schedule in schedules for outcome in (FIRED, FORCED)]
	parts = " union all ".join(f"select * from {LAST_JOBS} part{number}" for number in range(len(asked)))
	places = ", ".join(["%s"] * len(states.ACTIVE))
	rows = statements.fetch(
		f"""select distinct made.job_schedule from ({parts}) made
		join `tabBackground Job` job on job.name = made.background_job where job.status in ({places})""",
		[*(value for pair in asked for value in pair), *states.ACTIVE],
	)
	return [row.job_schedule for row in rows]


def unfinished_jobs(schedule: str) -> list[str]:
	"""Jobs that this schedule made and that may still run, oldest first; the last one of each chain."""
	rows = statements.fetch(
		f"""select job.name, job.status from (
			select * from {LAST_JOBS} fired union all select * from {LAST_JOBS} forced) made
		join `tabBackground Job` job on job.name = made.background_job order by job.created_utc, job.name""",
		(schedule, FIRED, schedule, FORCED),
	)
	active = [row for row in rows if row.status in states.ACTIVE]
	return [name for row in active if (name := _end_of(row))]


def is_in_the_way(fire: Fire, unfinished: list[str]) -> bool:
	"""Whether the policy has no room for this fire; then it says so."""
	policy = fire.schedule.overlap_policy
	if len(unfinished) <= (1 if policy == QUEUE_ONE else 0):
		return False
	fire.outcome = SKIPPED
	fire.message = f"{', '.join(unfinished)} not finished; overlap policy {policy}"
	return True


def _end_of(job) -> str | None:
	"""The job that stands for this one now, if that is not finished."""
	if job.status not in states.REPLACEABLE:
		return job.name
	last = successors.latest(job.name)
	rows = statements.fetch("select status from `tabBackground Job` where name = %s", (last,))
	return last if rows and rows[0].status in states.ACTIVE else None
