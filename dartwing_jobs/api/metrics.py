"""Metrics over HTTP: Prometheus' text for scrapers, figures for people and programs."""

from collections.abc import Iterator

import frappe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import (
	CounterMetricFamily,
	GaugeMetricFamily,
	HistogramMetricFamily,
	Metric,
)
from werkzeug.wrappers import Response

from dartwing_jobs import clock, scraper
from dartwing_jobs.api.arguments import Hours, Name
from dartwing_jobs.api.endpoint import endpoint
from dartwing_jobs.engine import metrics, statements, troubles
from dartwing_jobs.engine.observing import counters, gauges

# a scrape may count what is uncounted for so long; what is left is left to the sweep
FOLD_SECONDS = 2
# a label: the column of Job Metric that it comes from
COLUMNS = {"job_type": "job_type", "queue": "job_queue", "error_class": "error_class"}
BY_QUEUE = ["job_type", "queue"]
COUNTERS = {
	"jobs_enqueued_total": (BY_QUEUE, "Jobs that were put in line"),
	"jobs_started_total": (BY_QUEUE, "Attempts that were started"),
	"jobs_succeeded_total": (BY_QUEUE, "Jobs that were completed"),
	"jobs_failed_total": ([*BY_QUEUE, "error_class"], "Attempts that failed or ran out of time"),
	"jobs_retried_total": (BY_QUEUE, "Jobs that were put back for another attempt"),
	"jobs_requeued_total": (BY_QUEUE, "Jobs that were put back uncounted, by a snooze or an interruption"),
	"jobs_canceled_total": (BY_QUEUE, "Jobs that were canceled"),
	"deadletter_total": (BY_QUEUE, "Jobs that ended as dead letters"),
	troubles.TROUBLES: (["error_class"], "Pieces of work that the engine could not do, and set aside"),
}
HISTOGRAMS = {
	counters.DURATION: (BY_QUEUE, counters.DURATION_BOUNDS, "How long attempts took"),
	counters.ATTEMPTS: (["job_type"], counters.ATTEMPT_BOUNDS, "Attempts that jobs took until they ended"),
}


@frappe.whitelist(allow_guest=True, methods=["GET"])
def prometheus() -> Response:
	"""Everything, in the text that Prometheus reads."""
	scraper.check()
	counters.fold(FOLD_SECONDS)
	registry = CollectorRegistry()
	registry.register(Scrape())
	return Response(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


@endpoint("GET", "POST")
def get_job_metrics(organization: Name | None = None, hours: Hours = metrics.WINDOW_HOURS) -> dict:
	"""Figures of one organization, or of all that one may see, over the last hours."""
	figures = metrics.get_job_metrics(organization, hours)
	return {**figures, "as_of": clock.rfc3339(figures["as_of"])}


class Scrape:
	"""What Prometheus' library asks for its metrics."""

	def describe(self) -> list[Metric]:
		return []

	def collect(self) -> Iterator[Metric]:
		stored = statements.fetch(
			f"select metric, job_type, job_queue, error_class, bucket, value from `tab{counters.DOCTYPE}`"
		)
		yield from (_counter(name, stored) for name in COUNTERS)
		yield from (_histogram(name, stored) for name in HISTOGRAMS)
		yield from _gauges()


def _counter(name: str, stored: list) -> Metric:
	labels, text = COUNTERS[name]
	family = CounterMetricFamily(name, text, labels=labels)
	for row in stored:
		if row.metric == name:
			family.add_metric(_values(row, labels), float(row.value))
	return family


def _histogram(name: str, stored: list) -> Metric:
	labels, bounds, text = HISTOGRAMS[name]
	family = HistogramMetricFamily(name, text, labels=labels)
	kept: dict[tuple, dict[str, float]] = {}
	for row in stored:
		if row.metric == name:
			kept.setdefault(tuple(_values(row, labels)), {})[row.bucket] = float(row.value)
	for values, by_bucket in kept.items():
		family.add_metric(list(values), _cumulated(by_bucket, bounds), by_bucket.get(counters.SUM, 0.0))
	return family


def _cumulated(by_bucket: dict[str, float], bounds: tuple) -> list[tuple[str, float]]:
	"""Each bucket with all that fitted into a smaller one. Bounds that are no longer ours still count."""
	known = {str(bound) for bound in bounds} | set(by_bucket) - {counters.SUM, counters.OVER}
	total, buckets = 0.0, []
	for bound in [*sorted(known, key=float), counters.OVER]:
		total += by_bucket.get(bound, 0.0)
		buckets.append((str(float(bound)) if bound != counters.OVER else bound, total))
	return buckets


def _gauges() -> Iterator[Metric]:
	yield from _gauges_of_queues()
	yield _gauge("jobs_workers_alive", "Workers that serve a queue of ours", {(): gauges.workers_alive()})
	text = "Seconds since the last sweep"
	yield _gauge("jobs_seconds_since_last_sweep", text, {(): gauges.seconds_since_sweep()})
	text = "Pieces of work that are set aside, because they failed"
	set_aside = {(duty,): count for duty, count in troubles.by_duty().items()}
	yield _gauge("jobs_set_aside", text, set_aside, ["duty"])
	text = "Rows of the log that the counters do not know yet"
	yield _gauge("jobs_uncounted_log_rows", text, {(): counters.uncounted()})


def _gauges_of_queues() -> Iterator[Metric]:
	yield _gauge("jobs_waiting", "Jobs in line", _waiting(), ["queue", "priority"])
	text = "Jobs that are due, but held by a pause or a limit"
	yield _gauge("jobs_held", text, _by_queue(gauges.held()), ["queue"])
	yield _gauge("jobs_running", "Jobs that run", _by_queue(gauges.running()), ["queue"])
	objectives = {queue.name: queue.max_wait_seconds for queue in gauges.queues()}
	text = "How long a job may wait in line; 0: as long as it takes"
	yield _gauge("jobs_wait_objective_seconds", text, _by_queue(objectives), ["queue"])
	oldest = dict.fromkeys(objectives, 0) | gauges.oldest_waiting(clock.now())
	text = "How long the one that came first stands in line"
	yield _gauge("jobs_oldest_waiting_seconds", text, _by_queue(oldest), ["queue"])


def _waiting() -> dict[tuple, float]:
	depths = gauges.waiting()
	return {(queue, priority): depths[queue][priority] for queue in depths for priority in depths[queue]}


def _by_queue(values: dict[str, float]) -> dict[tuple, float]:
	return {(queue,): value for queue, value in values.items()}


def _gauge(
	name: str, text: str, values: dict[tuple, float | None], labels: list[str] | None = None
) -> Metric:
	"""What is not known is not shown."""
	family = GaugeMetricFamily(name, text, labels=labels or [])
	for labelled, value in values.items():
		if value is not None:
			family.add_metric(list(labelled), value)
	return family


def _values(row, labels: list[str]) -> list[str]:
	return [row[COLUMNS[label]] or "" for label in labels]
