"""Dramatiq: Redis as its broker, processes with one thread each."""

import os
import sys
from importlib.metadata import version

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker

from benchmarks.systems import work
from benchmarks.systems.peer import Peer
from benchmarks.systems.system import python_version

REDIS = os.environ["BENCHMARK_REDIS_URL"] + "/2"
dramatiq.set_broker(RedisBroker(url=REDIS))


@dramatiq.actor
def do(kind: str, number: int) -> None:
	work.do(kind, number)


class Dramatiq(Peer):
	starts_all = True

	def versions(self) -> dict[str, str]:
		redis_version = redis.Redis.from_url(REDIS).info()["redis_version"]
		return {"dramatiq": version("dramatiq"), "Redis": redis_version, "Python": python_version()}

	def send(self, kind: str, number: int) -> None:
		do.send(kind, number)

	def forget(self) -> None:
		redis.Redis.from_url(REDIS).flushdb()

	def worker_command(self, processes: int) -> list[str]:
		return [sys.executable, "-m", "dramatiq", "--processes", str(processes), "--threads", "1", __name__]
