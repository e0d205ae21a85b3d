"""Apps for an embedded site: by name, if Python finds them, or by the folder that they are in."""

import argparse
import os
from importlib.util import find_spec
from pathlib import Path

OURS = "dartwing_jobs"
HELP = "an app of yours, by its folder or name, beside this one; give it again for more"


def given(text: str) -> str | Path:
	"""What `--app` was given: the name of an app, or the folder of its package."""
	folder = Path(os.environ.get("CALLED_FROM", ""), Path(text).expanduser()).resolve()
	if not folder.is_dir():
		if text.isidentifier() and find_spec(text):
			return text
		raise argparse.ArgumentTypeError(f"there is no folder {text}, nor an app of that name")
	# as apps lie in a bench, my_app/my_app/hooks.py, or the inner folder by itself
	for package in (folder / folder.name, folder):
		if package.name.isidentifier() and (package / "hooks.py").exists():
			return package
	raise argparse.ArgumentTypeError(
		f"{text} is no app: neither it nor a folder {folder.name} inside it has a hooks.py"
	)


def link(app: str | Path, folder: Path) -> str:
	"""Puts an app into the apps of a home, where programs find it, and not what lies beside it."""
	if isinstance(app, str):
		return app
	place = folder / "apps" / app.name / app.name
	place.parent.mkdir(parents=True, exist_ok=True)
	place.unlink(missing_ok=True)
	place.symlink_to(app)
	return app.name


def paths(folder: Path) -> list[str]:
	"""What Python must look through to find the apps that were put into a home."""
	return sorted(map(str, (folder / "apps").glob("*")))
