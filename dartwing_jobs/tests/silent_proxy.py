"""A way to the database that a test can spoil: bytes vanish without a reset, or no server is there."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import frappe

HOST = "127.0.0.1"


class Proxy:
	"""Hands bytes on in both directions, for as long as it may."""

	def __init__(self, host: str, port: int):
		self.behind = host, port
		self.is_swallowed: Callable[[int], bool] = lambda port: False
		self.pairs: list[tuple[socket.socket, socket.socket]] = []
		self.server = socket.create_server((HOST, 0))
		self.port = self.server.getsockname()[1]
		self._start(self._accept, self.server)

	def swallow(self, which: Callable[[int], bool] = lambda port: True) -> None:
		"""From here on, what clients with these ports send, and what is sent to them, is lost."""
		self.is_swallowed = which

	def heal(self) -> None:
		"""What was lost stays lost, and both sides of such a connection wait for the other."""
		self.is_swallowed = lambda port: False

	def go_away(self) -> None:
		"""As a server that is stopped: connections end, and new ones are refused."""
		_end(self.server)
		for pair in self.pairs:
			for one in pair:
				_end(one)
		self.pairs.clear()

	def come_back(self) -> None:
		self.server = socket.create_server((HOST, self.port))
		self._start(self._accept, self.server)

	def _accept(self, server: socket.socket) -> None:
		with contextlib.suppress(OSError):  # it was closed
			while True:
				client, (_host, port) = server.accept()
				behind = socket.create_connection(self.behind)
				self.pairs.append((client, behind))
				self._start(self._hand_on, client, behind, port)
				self._start(self._hand_on, behind, client, port)

	def _hand_on(self, source: socket.socket, target: socket.socket, port: int) -> None:
		with contextlib.suppress(OSError):
			while data := source.recv(65536):
				if not self.is_swallowed(port):
					target.sendall(data)
		for one in (source, target):
			_end(one)

	def _start(self, work: Callable, *arguments) -> None:
		threading.Thread(target=work, args=arguments, daemon=True).start()


def _end(one: socket.socket) -> None:
	with contextlib.suppress(OSError):
		one.shutdown(socket.SHUT_RDWR)
	one.close()


@contextmanager
def for_new_processes() -> Iterator[Proxy]:
	"""Every process that is started inside goes through the proxy; the test itself does not."""
	conf, file = frappe.local.conf, Path(frappe.local.site, "site_config.json")
	proxy, before = Proxy(conf.db_host or HOST, int(conf.db_port)), file.read_text()
	file.write_text(json.dumps(json.loads(before) | {"db_host": HOST, "db_port": proxy.port}))
	try:
		yield proxy
	finally:
		file.write_text(before)
		proxy.go_away()


def ports_of(pid: int) -> set[int]:
	"""The ports from which a process has connected to others."""
	links = [Path(f"/proc/{pid}/fd", number) for number in _listed(f"/proc/{pid}/fd")]
	inodes = {_target(link).removeprefix("socket:[").removesuffix("]") for link in links}
	rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
	return {int(row[1].rpartition(":")[2], 16) for row in rows if row[9] in inodes}


def _listed(folder: str) -> list[str]:
	return [path.name for path in Path(folder).iterdir()]


def _target(link: Path) -> str:
	with contextlib.suppress(FileNotFoundError):
		return str(link.readlink())
	return ""
