"""Celery: Redis as its broker, no result backend, one worker that forks its processes.

As it comes it acknowledges a job before it runs; with `acks_late` afterwards, as the other systems do.
"""

import os
import sys
from importlib.metadata import version

import celery
import redis

from benchmarks.systems import work
from benchmarks.systems.peer import Peer
from benchmarks.systems.system import python_version

REDIS = os.environ["BENCHMARK_REDIS_URL"] + "/1"
app = celery.Celery("benchmark", broker=REDIS)
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)


@app.task
def do(kind: str, number: int) -> None:
	work.do(kind, number)


@app.task(acks_late=True)
def do_late(kind: str, number: int) -> None:
	work.do(kind, number)


class Celery(Peer):
	starts_all = True
	task = do

	def versions(self) -> dict[str, str]:
		redis_version = redis.Redis.from_url(REDIS).info()["redis_version"]
		return {"celery": version("celery"), "Redis": redis_version, "Python": python_version()}

	def send(self, kind: str, number: int) -> None:
		self.task.delay(kind, number)

	def forget(self) -> None:
		redis.Redis.from_url(REDIS).flushdb()

	def worker_command(self, processes: int) -> list[str]:
		options = ["--pool", "prefork", "--concurrency", str(processes), "--loglevel", "WARNING"]
		quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
		return [sys.executable, "-m", "celery", "-A", __name__, "worker", *options, *quiet]


class CeleryAcksLate(Celery):
	task = do_late
