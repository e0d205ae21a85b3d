"""A home of its own for these tests: real servers, and a site with a small app about notes."""

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2]))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE / "apps"), os.environ.get("PYTHONPATH")]))

from homes import embedded as homes  # noqa: E402
from homes.process import free_port  # noqa: E402

INTERPRETER = """
import json, sys, traceback
import frappe
for line in sys.stdin:
	scope = {"frappe": frappe, "answer": None}
	frappe.init(sys.argv[1]); frappe.connect()
	try:
		exec(json.loads(line), scope)
		frappe.db.commit()
		reply = {"answer": scope["answer"]}
	except Exception:
		reply = {"error": traceback.format_exc()}
	frappe.destroy()
	print(json.dumps(reply, default=str), flush=True)
"""


@pytest.fixture(autouse=True, scope="session")
def site():
	"""Like clean_slate, takes the place of the suite's own: these tests never touch the suite's site."""


clean_slate = site


class Bench:
	"""What an operator does in a home's sites folder."""

	def __init__(self, home: homes.Home):
		self.home = home
		self._options = {"cwd": home.sites, "env": home.environment(), "text": True}
		pipes, command = (
			{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE},
			[sys.executable, "-c", INTERPRETER],
		)
		self.interpreter = subprocess.Popen([*command, home.site], **pipes, **self._options)

	def command(self, *arguments: str) -> list[str]:
		chosen = ["--site", self.home.site, *arguments]
		return [sys.executable, "-m", "frappe.utils.bench_helper", "frappe", *chosen]

	def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess:
		done = subprocess.run(self.command(*arguments), capture_output=True, **self._options)
		assert not check or done.returncode == 0, done.stdout + done.stderr
		return done

	def python(self, code: str) -> object:
		"""Runs code on the site and commits; what it puts into `answer` comes back."""
		self.interpreter.stdin.write(json.dumps(code) + "\n")
		self.interpreter.stdin.flush()
		reply = json.loads(self.interpreter.stdout.readline())
		assert "error" not in reply, reply["error"]
		return reply["answer"]

	def steps(self) -> list[str]:
		return (self.home.folder / f"{self.home.site}.steps").read_text().splitlines()

	@contextlib.contextmanager
	def background(self, *arguments: str):
		process = subprocess.Popen(self.command(*arguments), stderr=subprocess.DEVNULL, **self._options)
		try:
			yield process
		finally:
			process.terminate()
			process.wait(timeout=20)


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
	folder = tmp_path_factory.mktemp("a home with spaces")
	with homes.open_home(folder, "notes.localhost", ["notes_app"]) as home:
		bench = Bench(home)
		yield bench
		bench.interpreter.communicate(timeout=10)


@pytest.fixture(scope="session")
def web(bench):
	"""A client without any knowledge of Frappe: gives a status and a decoded body."""
	base = f"http://127.0.0.1:{free_port()}"

	def ask(method: str, path: str, body: object = None, **headers: str) -> tuple[int, object]:
		data = None if body is None else json.dumps(body).encode()
		url = base + urllib.parse.quote(path, safe="/?&=")
		headers["Content-Type"] = "application/json"
		try:
			answer = urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method))
		except urllib.error.HTTPError as error:
			answer = error
		text = answer.read().decode()
		return answer.status, json.loads(text) if "json" in answer.headers["Content-Type"] else text

	def answers() -> bool:
		with contextlib.suppress(OSError):
			return ask("GET", "/api/method/ping") == (200, {"message": "pong"})

	with bench.background("serve", "--port", base.rpartition(":")[2]):
		wait_for(answers)
		yield ask


def wait_for(condition, seconds: float = 20) -> None:
	deadline = time.monotonic() + seconds
	while not condition():
		assert time.monotonic() < deadline, "nothing happened in time"
		time.sleep(0.05)
