"""What apps need, and in which versions it is installed: `python -I homes/pins.py APP ...`."""

import re
import sys
from importlib import metadata

NAME = re.compile(r"[A-Za-z0-9._-]+")


def installed_for(apps: list[str]) -> dict[str, str]:
	"""The distributions that these need, and those need in turn, with their versions."""
	found: dict[str, str] = {}
	names = [_normal(app) for app in apps]
	while names:
		name = names.pop()
		if name not in found and (version := _version(name)):
			found[name] = version
			names += _needed_by(name)
	return found


def _needed_by(name: str) -> list[str]:
	lines = metadata.requires(name) or []
	return [_normal(NAME.match(line).group()) for line in lines if "extra ==" not in line]


def _version(name: str) -> str | None:
	try:
		return metadata.version(name)
	except metadata.PackageNotFoundError:
		return None


def _normal(name: str) -> str:
	return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
	print(*(f"{name}=={version}" for name, version in sorted(installed_for(sys.argv[1:]).items())), sep="\n")
