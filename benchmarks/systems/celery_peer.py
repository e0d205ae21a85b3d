"""Celery: Redis as its broker, no result backend, one worker that forks two processes."""

import os
import sys
from importlib.metadata import version

import celery
import redis

from benchmarks.systems import tally
from benchmarks.systems.system import WORKERS, python_version
from benchmarks.systems.tallied import TalliedSystem

REDIS = os.environ["BENCHMARK_REDIS_URL"] + "/1"
app = celery.Celery("benchmark", broker=REDIS)
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)


@app.task
def stamp(number: int) -> None:
	tally.stamp(number)


@app.task
def hold() -> None:
	tally.hold()


class Celery(TalliedSystem):
	commands = 1

	def versions(self) -> dict[str, str]:
		redis_version = redis.Redis.from_url(REDIS).info()["redis_version"]
		return {"celery": version("celery"), "Redis": redis_version, "Python": python_version()}

	def submit_stamp(self, number: int) -> None:
		stamp.delay(number)

	def submit_hold(self) -> None:
		hold.delay()

	def forget(self) -> None:
		redis.Redis.from_url(REDIS).flushdb()

	def worker_command(self) -> list[str]:
		options = ["--pool", "prefork", "--concurrency", str(WORKERS), "--loglevel", "WARNING"]
		quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
		return [sys.executable, "-m", "celery", "-A", __name__, "worker", *options, *quiet]
