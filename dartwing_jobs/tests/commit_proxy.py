"""A proxy between a test and its database that cuts the connection at a commit."""

import itertools
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import frappe

LARGEST_PACKET = 1 << 16
COMMIT = re.compile(rb"\bcommit\b", re.IGNORECASE)


class CommitProxy:
	"""Passes everything on. Once it `is_armed`, its first connection is lost at the next commit.

	That reaches the server some seconds later, or never.
	"""

	def __init__(self, arrives_after: float | None):
		self.arrives_after = arrives_after
		self.is_armed = False
		self.is_over = threading.Event()  # whether the commit has arrived, or never will
		self.listener = socket.create_server(("127.0.0.1", 0))
		self.port = self.listener.getsockname()[1]
		conf = frappe.local.conf
		self.server = (conf.db_host or "127.0.0.1", int(conf.db_port or 3306))
		threading.Thread(target=self._accept, daemon=True).start()

	def _accept(self) -> None:
		for number in itertools.count():
			try:
				client, _address = self.listener.accept()
			except OSError:  # closed: the test is over
				return
			server = socket.create_connection(self.server)
			answers = threading.Thread(target=_copy, args=(server, client), daemon=True)
			answers.start()
			told = (client, server, answers, number == 0)
			threading.Thread(target=self._pass_on, args=told, daemon=True).start()

	def _pass_on(
		self, client: socket.socket, server: socket.socket, answers: threading.Thread, is_first: bool
	) -> None:
		while data := _received(client):
			if is_first and self.is_armed and COMMIT.search(data):
				self.is_armed = False
				self._cut(client, server, data)
				answers.join(10)  # until the server has gone, too
				self.is_over.set()
				return
			server.sendall(data)
		_shut(server)

	def _cut(self, client: socket.socket, server: socket.socket, data: bytes) -> None:
		_shut(client)
		if self.arrives_after is not None:
			time.sleep(self.arrives_after)
			server.sendall(data)
			server.shutdown(socket.SHUT_WR)  # it reads the commit, and then that the client is gone
		else:
			_shut(server)


@contextmanager
def connected(arrives_after: float | None) -> Iterator[CommitProxy]:
	"""Inside, the connection of this process, and each that follows it, goes through a proxy."""
	proxy, own, conf = CommitProxy(arrives_after), frappe.local.db, frappe.local.conf
	address = {name: conf.get(name) for name in ("db_host", "db_port")}
	conf.update(db_host="127.0.0.1", db_port=proxy.port)
	try:
		frappe.connect(set_admin_as_user=False)
		frappe.db.sql("select 1")
		frappe.db.rollback()
		yield proxy
		assert proxy.is_over.wait(10)
	finally:
		frappe.db.close()
		frappe.local.db = own
		conf.update(address)
		proxy.listener.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
	while data := _received(source):
		try:
			target.sendall(data)
		except OSError:
			continue  # the client is gone; the server still says something to it
	_shut(target)


def _received(source: socket.socket) -> bytes:
	try:
		return source.recv(LARGEST_PACKET)
	except OSError:
		return b""


def _shut(one: socket.socket) -> None:
	try:
		one.shutdown(socket.SHUT_RDWR)
	except OSError:
		return
