"""A home of its own for these tests: real servers, and a site with a small app about notes."""

import contextlib
import json
import os
import signal
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


@pytest.fixture(scope="session", autouse=True)
def site():
	"""Takes the place of the suite's own: these tests never touch the site that the suite runs on."""


@pytest.fixture(autouse=True)
def clean_slate():
	"""The same."""


INTERPRETER = """
import contextlib, io, json, sys, traceback
import frappe
for line in sys.stdin:
	scope, printed = {"frappe": frappe, "answer": None}, io.StringIO()
	frappe.init(sys.argv[1]); frappe.connect()
	try:
		with contextlib.redirect_stdout(printed):
			exec(json.loads(line), scope)
		frappe.db.commit()
		reply = {"answer": scope["answer"]}
	except Exception:
		reply = {"error": printed.getvalue() + traceback.format_exc()}
	frappe.destroy()
	print(json.dumps(reply, default=str), flush=True)
"""


class Bench:
	"""What an operator does in a home's sites folder."""

	def __init__(self, home: homes.Home):
		self.home = home
		self._options = {"cwd": home.sites, "env": home.environment(), "text": True}
		self._interpreter: subprocess.Popen | None = None

	def command(self, *arguments: str) -> list[str]:
		chosen = ["--site", self.home.site, *arguments]
		return [sys.executable, "-m", "frappe.utils.bench_helper", "frappe", *chosen]

	def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess:
		done = subprocess.run(self.command(*arguments), capture_output=True, **self._options)
		assert not check or done.returncode == 0, done.stdout + done.stderr
		return done

	def python(self, code: str) -> object:
		"""Runs code on the site and commits; what it puts into `answer` comes back."""
		if not self._interpreter:
			pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
			command = [sys.executable, "-c", INTERPRETER, self.home.site]
			self._interpreter = subprocess.Popen(command, **pipes, **self._options)
		self._interpreter.stdin.write(json.dumps(code) + "\n")
		self._interpreter.stdin.flush()
		reply = json.loads(self._interpreter.stdout.readline())
		assert "error" not in reply, reply["error"]
		return reply["answer"]

	def close(self) -> None:
		if self._interpreter:
			self._interpreter.communicate(timeout=10)

	def steps(self) -> list[str]:
		file = self.home.folder / f"{self.home.site}.steps"
		return file.read_text().splitlines() if file.exists() else []

	@contextlib.contextmanager
	def background(self, *arguments: str):
		quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
		process = subprocess.Popen(self.command(*arguments), **quiet, **self._options)
		try:
			yield process
		finally:
			process.send_signal(signal.SIGTERM)
			process.communicate(timeout=20)


class Web:
	"""A client without any knowledge of Frappe."""

	def __init__(self, base: str, site: str):
		self.base, self.site = base, site

	def __call__(self, method: str, path: str, body: object = None, **headers: str):
		"""Status, decoded body, headers."""
		headers = {"X-Frappe-Site-Name": self.site, **{k.replace("_", "-"): v for k, v in headers.items()}}
		data = None
		if body is not None:
			data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
		url = self.base + urllib.parse.quote(path, safe="/?&=%")
		request = urllib.request.Request(url, data, headers, method=method)
		try:
			with urllib.request.urlopen(request, timeout=20) as response:
				return response.status, _decoded(response), response.headers
		except urllib.error.HTTPError as error:
			return error.code, _decoded(error), error.headers


def _decoded(response) -> object:
	text = response.read().decode()
	return json.loads(text) if "json" in response.headers.get("Content-Type", "") else text


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
	folder = tmp_path_factory.mktemp("a home with spaces")
	with homes.open_home(folder, "notes.localhost", ["notes_app"]) as home:
		bench = Bench(home)
		yield bench
		bench.close()


@pytest.fixture(scope="session")
def web(bench):
	port = free_port()
	with bench.background("serve", "--port", str(port)) as process:
		client = Web(f"http://127.0.0.1:{port}", bench.home.site)
		wait_for(lambda: process.poll() is not None or _answers(client))
		assert process.poll() is None, process.stdout.read()
		yield client


@pytest.fixture(scope="session")
def admin(bench) -> dict[str, str]:
	"""Headers of a request by Administrator."""
	return token_of(bench, "Administrator")


def token_of(bench: Bench, user: str) -> dict[str, str]:
	code = f"""
from frappe.core.doctype.user.user import generate_keys
secret = generate_keys({user!r})["api_secret"]
answer = frappe.db.get_value("User", {user!r}, "api_key") + ":" + secret
"""
	return {"Authorization": f"token {bench.python(code)}"}


def wait_for(condition, seconds: float = 20):
	deadline = time.monotonic() + seconds
	while not (found := condition()):
		assert time.monotonic() < deadline, "nothing happened in time"
		time.sleep(0.05)
	return found


def _answers(client: Web) -> bool:
	try:
		return client("GET", "/api/method/ping")[0] == 200
	except OSError:
		return False
