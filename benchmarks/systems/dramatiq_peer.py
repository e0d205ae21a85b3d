"""Dramatiq: Redis as its broker, two processes with one thread each."""

import os
import sys
from importlib.metadata import version

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker

from benchmarks.systems import tally
from benchmarks.systems.system import WORKERS, python_version
from benchmarks.systems.tallied import TalliedSystem

REDIS = os.environ["BENCHMARK_REDIS_URL"] + "/2"
dramatiq.set_broker(RedisBroker(url=REDIS))


@dramatiq.actor
def stamp(number: int) -> None:
	tally.stamp(number)


@dramatiq.actor
def hold() -> None:
	tally.hold()


class Dramatiq(TalliedSystem):
	commands = 1

	def versions(self) -> dict[str, str]:
		redis_version = redis.Redis.from_url(REDIS).info()["redis_version"]
		return {"dramatiq": version("dramatiq"), "Redis": redis_version, "Python": python_version()}

	def submit_stamp(self, number: int) -> None:
		stamp.send(number)

	def submit_hold(self) -> None:
		hold.send()

	def forget(self) -> None:
		redis.Redis.from_url(REDIS).flushdb()

	def worker_command(self) -> list[str]:
		return [sys.executable, "-m", "dramatiq", "--processes", str(WORKERS), "--threads", "1", __name__]
