"""The wire of the doorbell: a connection to Redis that each thread keeps for what it asks again and again.

A client takes a connection from its pool, looks whether it still lives, and puts it back: more work than a
short question itself, which follows every commit that submits.
"""

import os
import threading

import redis

# questions that a thread remembers as they are sent: one for each queue that it rings for
QUESTIONS = 100


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
