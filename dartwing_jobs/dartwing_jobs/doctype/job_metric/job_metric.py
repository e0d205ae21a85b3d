"""Job Metric: a counter that only grows; `engine.observing.counters` writes it."""

from dartwing_jobs.document import EngineOwnedDocument


class JobMetric(EngineOwnedDocument):
	pass
