"""Structured logs: one JSON object per line, for each event of a job once it is committed, and for what the
engine has to say itself. Each has the ids of the job, or of the request, as far as there is one.

The file is dartwing_jobs.json.log in the site's folder for logs. `dartwing_log_level` in the site's
configuration says what is worth a line; by default that is what went wrong.
"""

import fcntl
import json
import logging
import os
import re
from datetime import datetime, timezone
from functools import lru_cache

import frappe

from dartwing_jobs.engine import sanitize
from dartwing_jobs.engine.intake import payload

FILE = "dartwing_jobs.json.log"
# the event of a line that the engine says itself
ENGINE = "engine.log"
DEFAULT_LEVEL = logging.WARNING
WENT_WRONG = frozenset({"job.failed", "job.timed_out", "job.deadlettered"})
LARGEST_FILE = 20_000_000
FILES_KEPT = 5
# a line's key: the column of the log row that it comes from
KEYS = {
	"event": "event",
	"request_id": "request_id",
	"correlation_id": "correlation_id",
	"job_id": "job_id",
	"job": "background_job",
	"job_type": "job_type",
	"org_id": "organization",
	"project_id": "project_id",
	"attempt": "attempt",
	"queue": "job_queue",
	"duration": "duration_seconds",
	"error_class": "error_class",
}
# what people write; it takes other signs than these to tell a secret
TEXTS = ("request_id", "correlation_id", "project_id", "message")
HARMLESS = re.compile(r"[\w.@/+-]*")
_encode = json.JSONEncoder(default=str, ensure_ascii=False).encode


def tell_after_commit(log_rows: list[dict]) -> None:
	"""Nothing is said of what is rolled back, and next to nothing is done for what nobody wants to read."""
	lowest = lowest_level(frappe.local.conf.get("dartwing_log_level"))
	if worth_telling := [row for row in log_rows if level_of(row) >= lowest]:
		frappe.db.after_commit.add(lambda: tell(worth_telling))


def say(message: str, level: int, about=None, error_class: str | None = None) -> None:
	"""A line of the engine, written at once; `about` is a job, or else it is what runs here.

	Its time is UTC, with the offset: the database, which knows the site's zone, may not answer.
	"""
	if level < lowest_level(frappe.local.conf.get("dartwing_log_level")):
		return
	about = about or payload.here()
	row = {column: about.get(column) for column in KEYS.values()}
	row |= {"background_job": about.get("name"), "event": ENGINE, "error_class": error_class}
	tell([{**row, "message": message, "level": level, "timestamp": datetime.now(timezone.utc)}])


def tell(log_rows: list[dict]) -> None:
	"""Writes at once. A disk that is full is no reason to fail a job, or what follows its commit."""
	lines = "".join(f"{line(row)}\n" for row in log_rows)
	try:
		_file(os.path.abspath(frappe.local.site_path)).write(lines.encode(errors="replace"))
	except OSError as error:
		frappe.logger("dartwing_jobs").error("Could not write to %s (%s): %s", FILE, error, lines)


def line(row: dict) -> str:
	"""A row of the log as JSON."""
	told = {"ts": row["timestamp"].isoformat(), "level": logging.getLevelName(level_of(row))}
	for key, column in KEYS.items():
		told[key] = row[column]
	if row["message"]:
		told["message"] = row["message"]
	for key in TEXTS:
		if (text := told.get(key)) and not HARMLESS.fullmatch(text):
			told[key] = sanitize.text(text)
	return _encode(told)


def level_of(row: dict) -> int:
	if row["event"] == ENGINE:
		return row["level"]
	return logging.WARNING if row["event"] in WENT_WRONG else logging.INFO


@lru_cache
def lowest_level(word: str | None) -> int:
	"""A word that is no level is one that nobody meant."""
	level = logging.getLevelName(str(word).upper())
	return level if isinstance(level, int) else DEFAULT_LEVEL


@lru_cache
def _file(site_path: str) -> "SharedFile":
	folder = os.path.join(site_path, "logs")
	os.makedirs(folder, exist_ok=True)
	return SharedFile(os.path.join(folder, FILE))


class SharedFile:
	"""A file that many processes write to: whole lines at its end. Who finds it too large puts it aside.

	Python's own files that rotate are for one process: of two that rotate at once, one loses lines.
	"""

	def __init__(self, path: str):
		self.path, self.file, self.inode = path, -1, -1

	def write(self, lines: bytes) -> None:
		self.follow()
		os.write(self.file, lines)

	def follow(self) -> None:
		"""Opens the file that has the name now: it may have been put aside, or removed."""
		found = _stat(self.path)
		if found and found.st_size > LARGEST_FILE:
			self.put_aside()
			found = _stat(self.path)
		if found is None or found.st_ino != self.inode:
			if self.file >= 0:
				os.close(self.file)
			self.file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
			self.inode = os.fstat(self.file).st_ino

	def put_aside(self) -> None:
		with open(f"{self.path}.lock", "w") as lock:
			fcntl.flock(lock, fcntl.LOCK_EX)
			found = _stat(self.path)
			if found and found.st_size > LARGEST_FILE:  # or else another process was quicker
				for number in range(FILES_KEPT - 1, 0, -1):
					_move(f"{self.path}.{number}", f"{self.path}.{number + 1}")
				_move(self.path, f"{self.path}.1")


def _stat(path: str) -> os.stat_result | None:
	try:
		return os.stat(path)
	except FileNotFoundError:
		return None


def _move(path: str, to: str) -> None:
	if os.path.exists(path):
		os.replace(path, to)
