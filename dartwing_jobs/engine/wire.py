"""The wire of the doorbell: a connection to Redis that each thread keeps for what it asks again and again.

A client takes a connection from its pool, looks whether it still lives, and puts it back: more work than a
short question itself, which follows every commit that submits.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import redis

# a Redis that did not answer in time is not asked again for so long: each commit would wait for it
LEFT_ALONE_SECONDS = 3
# questions that a thread remembers as they are sent: one for each queue that it rings for
QUESTIONS = 100


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


def make_impatient(client: redis.Redis) -> redis.Redis:
	"""From here on one question to a Redis that hangs waits, and those of the next seconds do not."""
	pool = client.connection_pool
	pool.connection_class = type("Connection", (Impatient, pool.connection_class), {"silence": Silence()})
	return client


def silence_of(client: redis.Redis) -> Silence:
	return client.connection_pool.connection_class.silence


class Wire(threading.local):
	def __init__(self):
		self.process, self.connections, self.packed = 0, {}, {}

	def ask(self, client: redis.Redis, *command: str | int):
		"""What Redis answers; once more on a new connection where the kept one was lost."""
		connection = self._connection(client)
		packed = self._packed(connection, command)
		try:
			return _ask(connection, packed)
		except redis.ConnectionError:  # Redis was started anew, or has closed what nobody used
			return _ask(connection, packed)

	def _connection(self, client: redis.Redis):
		if self.process != os.getpid():  # a fork has its parent's, and must not speak on it
			self.process, self.connections = os.getpid(), {}
		if client not in self.connections:
			self.connections[client] = client.connection_pool.make_connection()
		return self.connections[client]

	def _packed(self, connection, command: tuple) -> list:
		if command not in self.packed:
			if len(self.packed) == QUESTIONS:
				self.packed.clear()
			self.packed[command] = connection.pack_command(*command)
		return self.packed[command]


def _ask(connection, packed: list):
	try:
		connection.send_packed_command(packed)
		return connection.read_response()
	except BaseException:  # an alarm, too: no answer is to be left for the next question
		connection.disconnect()
		raise


kept = Wire()
