"""Job Turnstile: a row to lock while something is counted; `engine.limits.turnstiles` writes it."""

from dartwing_jobs.document import EngineOwnedDocument


class JobTurnstile(EngineOwnedDocument):
	pass
