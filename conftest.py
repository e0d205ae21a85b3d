"""Connects the suite to a site: `bin/test` names it in SITE and starts pytest in its sites folder."""

import os

import frappe
import pytest

from dartwing_jobs.tests.world import make_world


def pytest_collection_modifyitems(items):
	"""Last: the tests that take the app away and bring it back."""
	items.sort(key=lambda item: item.path.name == "test_installation.py")


@pytest.fixture(scope="session", autouse=True)
def site():
	frappe.init(os.environ["SITE"])
	frappe.connect()
	_switch_alerts_off()
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


def _switch_alerts_off() -> None:
	"""Hundreds of jobs die in this suite; only the tests of alerts want to be told."""
	frappe.db.set_value("Job Type", "dartwing_alert", "is_enabled", 0)
	frappe.db.commit()


def _reset() -> None:
	frappe.set_user("Administrator")
	frappe.db.rollback()
	# an importer that stops early leaves this set, and link checks remember what they did not find
	frappe.flags.in_import = False
	frappe.db.value_cache.clear()
	frappe.clear_messages()
