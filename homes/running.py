"""Which homes of this checkout are running, so that another terminal can join one."""

import contextlib
import fcntl
import hashlib
from collections.abc import Iterator
from pathlib import Path

KNOWN = Path(__file__).resolve().parents[1] / ".venv" / "running"
LOCK = ".lock"


@contextlib.contextmanager
def announced(home: Path, known: Path = KNOWN) -> Iterator[None]:
	"""A home can be found while the block runs. Where nothing can be written it must be named instead."""
	note = known / hashlib.sha256(str(home).encode()).hexdigest()[:16]
	with contextlib.suppress(OSError):
		known.mkdir(parents=True, exist_ok=True)
		note.write_text(str(home))
	try:
		yield
	finally:
		with contextlib.suppress(OSError):
			note.unlink()


def homes(known: Path = KNOWN) -> list[Path]:
	"""Those that run now; a note may have outlived a home that was killed."""
	noted = [Path(note.read_text()) for note in sorted(known.glob("*"))]
	return [home for home in noted if is_running(home)]


def is_running(home: Path) -> bool:
	"""Whether a program holds a home's lock."""
	try:
		with (home / LOCK).open("r+") as lock:
			fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
	except BlockingIOError:
		return True
	except OSError:
		return False
	return False
