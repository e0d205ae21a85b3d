"""The other end of `systems/driver.py`: a system that runs in another environment, called from here."""

import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

CLOSE_SECONDS = 120
# where it is set, each job of frappe.enqueue compiles Frappe anew: nobody runs workers so
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"


class RemoteError(Exception):
	"""The system could not do what it was asked; says why in a line."""


@dataclass(frozen=True)
class Environment:
	"""Where a system can live: a python, its variables, the folder it runs in."""

	python: Path
	cwd: Path
	variables: dict[str, str] = field(default_factory=dict)


class Remote:
	def __init__(self, environment: Environment, module: str, kind: str, folder: Path):
		folder.mkdir(parents=True, exist_ok=True)
		self.log = folder / "driver.log"
		self.is_busy = False
		command = [environment.python, "-m", "benchmarks.systems.driver", module, kind, folder]
		with self.log.open("ab") as log:
			self.process = subprocess.Popen(
				command,
				cwd=environment.cwd,
				env={name: value for name, value in environment.variables.items() if name != NO_BYTECODE},
				stdin=subprocess.PIPE,
				stdout=subprocess.PIPE,
				stderr=log,
				text=True,
				start_new_session=True,  # Ctrl-C is for us; the driver ends when we do, and cleans up
			)

	def call(self, method: str, **arguments):
		self.is_busy = True
		try:
			self.process.stdin.write(json.dumps({"method": method, "arguments": arguments}) + "\n")
			self.process.stdin.flush()
			answer = json.loads(self.process.stdout.readline())
		except (OSError, ValueError):
			raise RemoteError(self._last_words()) from None
		self.is_busy = False
		if "error" in answer:
			with self.log.open("a") as log:
				log.write(answer["traceback"])
			raise RemoteError(answer["error"].splitlines()[0])
		return answer["result"]

	def close(self) -> None:
		"""Lets it clean up, at once if somebody stopped waiting for it; raises when it could not."""
		if self.is_busy:
			self.process.terminate()
		self.process.stdin.close()
		try:
			code = self.process.wait(CLOSE_SECONDS)
		except subprocess.TimeoutExpired:
			self.process.kill()
			code = self.process.wait()
		self.process.stdout.close()
		if code:
			raise RemoteError(self._last_words())

	def _last_words(self) -> str:
		lines = self.log.read_text().strip().splitlines()
		return lines[-1] if lines else "its process ended without a word"
