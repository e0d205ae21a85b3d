"""Many jobs run in one process, and none sees anything of the one before."""

import frappe
import pytest

from dartwing_jobs import hooks, submit
from dartwing_jobs.engine import drain
from dartwing_jobs.engine.handling import job_hooks as engine_hooks
from dartwing_jobs.tests import littering
from dartwing_jobs.tests.world import make_job_type, make_queue, stored_status

HERE = "dartwing_jobs.tests.littering"


@pytest.fixture
def queue():
	littering.hooked.clear()
	return make_queue()


@pytest.fixture
def job_hooks(monkeypatch):
	"""As another app's hooks.py lists them."""
	for hook in ("before_job", "after_job"):
		monkeypatch.setattr(hooks, hook, [f"{HERE}.{hook}"], raising=False)
	_forget_hooks()
	yield
	monkeypatch.undo()
	_forget_hooks()


def _forget_hooks() -> None:
	engine_hooks.forget()
	frappe.clear_cache()


def run(world, queue: str, *jobs: tuple[str, dict]) -> list[str]:
	"""Runs jobs one after another in this process, as one drain does."""
	names = []
	for handler, parameters in jobs:
		job_type = make_job_type(handler_method=f"{HERE}.{handler}").name
		owner = {"job_queue": queue, "owner_user": world.user_a}
		names.append(submit(job_type, parameters, world.a, **owner).name)
	frappe.db.commit()
	assert drain.drain([queue]) == len(jobs)
	return names


def output(job_name: str):
	return frappe.parse_json(frappe.get_last_doc("Job Run", {"background_job": job_name}).output)


@pytest.mark.parametrize("fail", [False, True])
def test_nothing_leaks_into_the_next_job(world, queue, fail):
	first, littered, second = run(
		world, queue, ("look_around", {}), ("litter", {"fail": fail}), ("look_around", {})
	)
	assert stored_status(littered) == ("Dead Letter" if fail else "Completed")
	before, after = output(first), output(second)
	# what was asked for after the commit, or after the rollback, has been done once, before the next began
	assert after.pop("callbacks") == ["after rollback" if fail else "after commit"]
	assert before.pop("callbacks") == []
	assert after == before
	assert after["user"] == world.user_a
	description = frappe.db.get_value(
		"Job Type", frappe.db.get_value("Background Job", littered, "job_type"), "description"
	)
	assert description == (None if fail else "litter")


def test_a_drain_leaves_the_state_of_an_administrator(world, queue):
	run(world, queue, ("litter", {}))
	assert frappe.session.user == "Administrator"
	assert not frappe.flags.litter
	assert frappe.local.message_log == []


def test_hooks_of_other_apps_run_around_each_job(world, queue, job_hooks):
	looked, _littered = run(world, queue, ("look_around", {"n": 1}), ("litter", {"fail": True}))
	assert output(looked)["callbacks"] == [["before", "look_around", {"n": 1}, "job"]]
	assert littering.hooked == [
		["after", "look_around", True],
		["before", "litter", {"fail": True}, "job"],
		["after", "litter", False],
		"after rollback",
	]


def test_a_failing_hook_fails_the_job(world, queue, job_hooks, monkeypatch):
	"""As it does with Frappe's own jobs: whoever prepares for jobs may refuse one."""
	monkeypatch.setattr(hooks, "before_job", ["dartwing_jobs.tests.test_clean_state.refuse"])
	_forget_hooks()
	(name,) = run(world, queue, ("look_around", {}))
	assert frappe.db.get_value("Background Job", name, ["status", "error_message"]) == (
		"Dead Letter",
		"not today",
	)


def refuse(method: str) -> None:
	raise frappe.ValidationError("not today")


def test_a_hook_with_a_switch_runs_when_it_is_switched_on(world, queue, job_hooks, monkeypatch):
	"""Frappe's recorder asks Redis before each job; the engine asks for it, but not each time."""
	switch = "dartwing-test-switch"
	monkeypatch.setitem(engine_hooks.SWITCHES, f"{HERE}.before_job", switch)
	monkeypatch.setattr(engine_hooks, "SWITCH_SECONDS", 0)
	_forget_hooks()
	(off,) = run(world, queue, ("look_around", {}))
	frappe.cache.set_value(switch, 1)
	(on,) = run(world, queue, ("look_around", {}))
	frappe.cache.delete_value(switch)
	assert (len(output(off)["callbacks"]), output(on)["callbacks"][-1][0]) == (0, "before")
