"""Connects the suite to a site: `bin/test` names it in SITE and starts pytest in its sites folder."""

import os

import frappe
import pytest

from dartwing_jobs.tests.world import make_world

# behind all others: what looks at the jobs that they left, then what takes the app away and brings it back
LAST = ("test_story.py", "test_installation.py")


def pytest_collection_modifyitems(items):
	items.sort(key=lambda item: LAST.index(item.path.name) if item.path.name in LAST else -1)


@pytest.fixture(scope="session", autouse=True)
def site():
	frappe.init(os.environ["SITE"])
	frappe.connect()
	yield os.environ["SITE"]
	frappe.destroy()


@pytest.fixture(autouse=True)
def clean_slate(site):
	"""Each test starts as Administrator in a fresh transaction and leaves nothing uncommitted behind."""
	_reset()
	yield
	_reset()


@pytest.fixture(scope="session")
def world(site):
	"""Two organizations with their people, committed, so that other connections see them."""
	world = make_world()
	frappe.db.commit()
	return world


def _reset() -> None:
	frappe.set_user("Administrator")
	frappe.db.rollback()
	# an importer that stops early leaves this set, and link checks remember what they did not find
	frappe.flags.in_import = False
	frappe.db.value_cache.clear()
	frappe.clear_messages()
