"""A client of Redis that never makes its callers wait twice for a Redis that hangs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import redis

# a Redis that did not answer in time is not asked again for so long: each commit would wait for it
LEFT_ALONE_SECONDS = 3


class Silence:
	"""When a Redis was last found to hang: stopped or cut off, it takes what it is sent and never answers."""

	def __init__(self):
		self.found_at: float | None = None

	def is_known(self) -> bool:
		return self.found_at is not None and time.monotonic() - self.found_at < LEFT_ALONE_SECONDS

	@contextmanager
	def respected(self) -> Iterator[None]:
		"""Refuses at once what would only wait; notes when a caller has waited in vain."""
		if self.is_known():
			raise redis.TimeoutError("Redis did not answer a moment ago, and is left alone for some seconds")
		try:
			yield
		except redis.TimeoutError:
			self.found_at = time.monotonic()
			raise


class Impatient:
	"""Mixed into the connections of a client, which share one `silence`."""

	silence: Silence

	def connect(self, *args, **kwargs):
		with self.silence.respected():
			return super().connect(*args, **kwargs)

	def send_packed_command(self, *args, **kwargs):
		with self.silence.respected():
			return super().send_packed_command(*args, **kwargs)

	def read_response(self, *args, **kwargs):
		with self.silence.respected():
			return super().read_response(*args, **kwargs)


def make(url: str, **options) -> redis.Redis:
	client = redis.Redis.from_url(url, **options)
	pool = client.connection_pool
	pool.connection_class = type("Connection", (Impatient, pool.connection_class), {"silence": Silence()})
	return client


def silence_of(client: redis.Redis) -> Silence:
	return client.connection_pool.connection_class.silence
