"""The hot path's parts, by name: the one place to change when the engine's functions are renamed."""

from dartwing_jobs.engine import drain

JOB_QUEUE = "q:default"

# what is timed, in the order of a job's life; a part's time excludes the parts that it calls
STEPS = (
	("promote", "dartwing_jobs.engine.promote.promote_due"),
	("claim", "dartwing_jobs.engine.claim.Turns.take"),
	("start", "dartwing_jobs.engine.attempt.start"),
	("fresh context", "dartwing_jobs.engine.fresh.become"),
	("permission check", "dartwing_jobs.engine.facts.Facts.refusal"),
	("handler and its hooks", "dartwing_jobs.engine.attempt.call_handler"),
	("finish", "dartwing_jobs.engine.outcomes.completion"),
	("commit", "dartwing_jobs.engine.statements.Trip.commit"),
	("statements on their way and in the database", "dartwing_jobs.engine.statements._send"),
)


def drain_here() -> int:
	"""Runs what is due in this process, as a worker's drain would; returns how many jobs."""
	return drain.drain([JOB_QUEUE])
