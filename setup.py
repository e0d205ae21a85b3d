"""For tools that still ask for a setup.py; pyproject.toml is the truth and a test keeps the two alike."""

import re
from pathlib import Path

from setuptools import find_packages, setup

root = Path(__file__).parent
version = re.search(r'__version__ = "(.+)"', (root / "dartwing_jobs/__init__.py").read_text()).group(1)
lines = (root / "requirements.txt").read_text().splitlines()
install_requires = [line for line in lines if line and not line.startswith("#")]

setup(
	name="dartwing_jobs",
	version=version,
	description="Durable, visible, multi-tenant background jobs for Frappe",
	license="MIT",
	python_requires=">=3.10",
	packages=find_packages(include=["dartwing_jobs", "dartwing_jobs.*"]),
	include_package_data=True,
	install_requires=install_requires,
)
