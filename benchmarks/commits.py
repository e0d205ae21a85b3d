"""Two states of this repository's app in one bench: what a commit holds, and what stands here now.

Each side has a site and a Redis of its own, because DocTypes and messages differ, and a folder from which
nothing but its own app can be imported. The database server and the benchmark itself are the same for both.
"""

import functools
import io
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.places import ROOT, MeasuredBench
from benchmarks.remote import Environment
from homes.bench import (
	APP,
	make_site,
	private_server,
	stand_beside,
	start_private_redis,
	tools_for,
)
from homes.mariadb import MariaDB
from homes.postgres import Postgres

# what both sides have from here: they must be measured alike
SHARED = ("benchmarks", "homes")
PRESENT = "here"


@contextmanager
def open_sides(bench: Path, commit: str, database: str) -> Iterator[dict[str, Environment]]:
	"""Environments by name: of the present app, and of the commit's."""
	with tempfile.TemporaryDirectory(prefix="dartwing-commits-") as name, ExitStack() as stack:
		folder = Path(name)
		folder.chmod(0o755)  # PostgreSQL runs as another user when we are root
		_copy_present(folder / PRESENT)
		_copy_commit(commit, folder / commit)
		server = private_server(database, (), folder / "server")
		server.start = functools.cache(server.start)  # each site that is made starts it
		yield {side: _open_side(bench, folder / side, server, stack) for side in (PRESENT, commit)}


def resolve(commit: str) -> str:
	"""The short hash of a commit; raises ValueError for what is none."""
	try:
		return _git("rev-parse", "--verify", "--quiet", "--short", f"{commit}^{{commit}}").decode().strip()
	except subprocess.CalledProcessError:
		raise ValueError(f"this repository has no commit {commit}") from None


def describe_present() -> str:
	changed = " with uncommitted changes" if _git("status", "--porcelain", "--", APP) else ""
	return resolve("HEAD") + changed


def _open_side(bench: Path, folder: Path, server: MariaDB | Postgres, stack: ExitStack) -> Environment:
	side = MeasuredBench(bench, folder / "code")
	stand_beside(side, folder)
	side.tools = tools_for(side)
	start_private_redis(side, folder, stack)
	site = make_site(side, server, stack)
	side.install_app(site)
	return Environment(side.python, side.sites, side.environment(site))


def _copy_present(folder: Path) -> None:
	"""A copy: whoever goes on writing here meanwhile must not change what is measured."""
	_copy(APP, _code_in(folder))


def _copy_commit(commit: str, folder: Path) -> None:
	"""No worktree: git would remember it if this process were killed."""
	with tarfile.open(fileobj=io.BytesIO(_git("archive", commit, APP))) as archive:
		archive.extractall(_code_in(folder))


def _code_in(folder: Path) -> Path:
	code = folder / "code"
	code.mkdir(parents=True)
	for name in SHARED:
		_copy(name, code)
	return code


def _copy(name: str, folder: Path) -> None:
	shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))


def _git(*arguments: str) -> bytes:
	return subprocess.run(["git", "-C", ROOT, *arguments], check=True, capture_output=True).stdout
