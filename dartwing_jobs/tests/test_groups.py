"""Groups: made as one, in order or side by side, joined, settled once, called back, canceled, repaired."""

import multiprocessing
import os
import signal
import time
from datetime import timedelta
from itertools import pairwise

import frappe
import pytest

from dartwing_jobs import (
	cancel,
	cancel_group,
	clock,
	group,
	group_progress,
	group_status,
	replay,
	retry,
	submit,
	submit_many,
)
from dartwing_jobs.engine import database, dependents, drain, retention, statements, sweep
from dartwing_jobs.engine.groups import ends as group_ends
from dartwing_jobs.engine.observing import listeners
from dartwing_jobs.errors import DuplicateJob, FrozenFieldError, GroupEnded, InvalidJobError
from dartwing_jobs.testing import fall_due, run_job, start_job
from dartwing_jobs.tests import workers
from dartwing_jobs.tests.processes import beside, in_other_processes
from dartwing_jobs.tests.world import (
	REPEATABLE,
	make_job,
	make_job_type,
	make_queue,
	make_user,
	plant,
	stored_status,
	story,
)

HANDLERS = {
	"good": "dartwing_jobs.tests.grouping.work",
	"bad": "dartwing_jobs.samples.fail_for_good",
	"second_try": "dartwing_jobs.tests.grouping.work_at_the_second_try",
	"stopping": "dartwing_jobs.tests.grouping.stop_when_asked",
	"deadly": "dartwing_jobs.tests.grouping.die_after_the_commit",
}
CALLBACK = "dartwing_jobs.tests.grouping.work"
# how two members end, and after how many days they are deleted
END_OF = (("bad", 1), ("good", 365))
BARRIER = multiprocessing.get_context("fork").Barrier(2)


@pytest.fixture
def queue():
	return make_queue()


@pytest.fixture(scope="module")
def types(site):
	"""A job type for each way to behave."""
	made = {kind: make_job_type(handler_method=path).name for kind, path in HANDLERS.items()}
	new_job = {"retry_mode": "New Job", "max_retries": 2, "backoff_base_seconds": 1}
	made["new_job"] = make_job_type(handler_method=HANDLERS["second_try"], **new_job).name
	frappe.db.commit()
	return made


@pytest.fixture
def made(world, queue, types):
	"""Makes a committed group whose members behave as they are told."""

	def making(*kinds: str, **options):
		jobs = [{"job_type": types[kind], "job_queue": queue} for kind in kinds]
		new = group("a group", jobs, organization=world.a, **options)
		frappe.db.commit()
		return new

	return making


@pytest.fixture
def callback(queue):
	"""A callback of a type of its own."""
	job_type = make_job_type(handler_method=CALLBACK, job_queue=queue, deduplication_window=3600).name
	return {"job_type": job_type, "parameters": {"mark": "mine"}, "on": "Any End"}


def members(new) -> list[str]:
	order = "position asc, creation asc"
	return frappe.get_all("Background Job", filters={"job_group": new.name}, order_by=order, pluck="name")


def statuses(new) -> list[str]:
	frappe.db.rollback()
	return [stored_status(name) for name in members(new)]


def column(new, fieldname: str = "status"):
	frappe.db.rollback()
	return frappe.db.get_value("Job Group", new.name, fieldname)


def callbacks(callback: dict) -> list[dict]:
	"""What the jobs that were called back have been given, in order."""
	frappe.db.rollback()
	filters, fields = {"job_type": callback["job_type"]}, ["input_parameters", "owner_user"]
	rows = frappe.get_all("Background Job", filters=filters, fields=fields, order_by="creation asc")
	return [{**frappe.parse_json(row.input_parameters), "owner": row.owner_user} for row in rows]


def join(new, types, kind="good", **options):
	job = submit(types[kind], None, new.organization, job_group=new.name, **options)
	frappe.db.commit()
	return job


# making


def test_a_group_is_made_with_its_members_in_order(made, types):
	new = made("good", "bad", "good")
	fields = ["position", "job_type", "status"]
	rows = frappe.get_all(
		"Background Job", filters={"job_group": new.name}, fields=fields, order_by="position asc"
	)
	kinds = [types[one] for one in ("good", "bad", "good")]
	assert [(row.position, row.job_type) for row in rows] == list(zip([1, 2, 3], kinds, strict=True))
	assert {row.status for row in rows} == {"Queued"}
	assert (new.status, new.last_position, new.mode) == ("Queued", 3, "Parallel")


def test_one_type_with_many_parameters_is_a_group(world, queue, types):
	jobs = {"job_type": types["good"], "job_queue": queue, "parameters": [{"n": n} for n in range(700)]}
	new = group("many", jobs, organization=world.a)
	frappe.db.commit()
	names = members(new)
	given = frappe.db.get_value("Background Job", names[-1], ["position", "input_parameters"], as_dict=True)
	assert (len(names), given.position, frappe.parse_json(given.input_parameters)) == (700, 700, {"n": 699})


@pytest.mark.parametrize("mode", ["Parallel", "Sequential"])
def test_a_member_that_cannot_be_submitted_undoes_the_whole_group(world, types, mode):
	before = frappe.db.count("Background Job")
	with pytest.raises(InvalidJobError, match="was not found"):
		group("half", [{"job_type": types["good"]}, {"job_type": "no_such"}], organization=world.a, mode=mode)
	frappe.db.commit()
	assert frappe.db.count("Background Job") == before
	assert not frappe.db.exists("Job Group", {"group_name": "half"})


@pytest.mark.parametrize(
	("jobs", "complaint"),
	[
		([{"parameters": {}}], "job_type"),
		({"job_type": REPEATABLE, "parameters": {"n": 1}}, "list of parameters"),
		([{"job_type": REPEATABLE, "position": 3}], "position"),
		([{"job_type": REPEATABLE, "colour": "red"}], "no option colour"),
	],
)
def test_what_is_no_member_is_refused(world, jobs, complaint):
	with pytest.raises(InvalidJobError, match=complaint):
		group("wrong", jobs, organization=world.a)


def test_alike_members_are_no_duplicates_of_each_other(world, queue):
	job_type = make_job_type(deduplication_window=3600, job_queue=queue).name
	alike = {"job_type": job_type, "parameters": [{"same": 1}] * 3}
	assert len(members(group("alike", alike, organization=world.a))) == 3


def test_a_member_whose_key_is_taken_is_refused(world, types):
	held = submit(types["good"], None, world.a, unique_key="only-one")
	with pytest.raises(DuplicateJob, match=held.name):
		group("taken", [{"job_type": types["good"], "unique_key": "only-one"}], organization=world.a)


def test_outsiders_make_no_groups(world, types):
	for person in (world.user_b, world.stranger):
		frappe.set_user(person)
		with pytest.raises(frappe.PermissionError):
			group("foreign", [{"job_type": types["good"]}], organization=world.a)


# running


def test_a_group_runs_from_its_first_start_to_its_last_end(made):
	new = made("good", "good")
	first, last = members(new)
	assert column(new) == "Queued"
	start_job(first)
	assert (column(new), group_status(new.name)) == ("Running", "Running")
	run_job(last)
	assert (column(new), group_status(new.name)) == ("Running", "Running")


def test_a_group_ends_with_its_last_member(made, queue):
	new = made("good", "good")
	drain.drain([queue])
	assert (column(new), group_status(new.name)) == ("Completed", "Completed")
	assert column(new, "ended_at")


def test_members_of_a_sequential_group_run_one_after_another(made, queue):
	new = made("good", "good", "good", mode="Sequential")
	assert statuses(new) == ["Queued", "Pending", "Pending"]
	first, second, third = members(new)
	assert frappe.db.get_value("Background Job", third, "depends_on") == second
	run_job(first)
	assert statuses(new) == ["Completed", "Queued", "Pending"]
	assert drain.drain([queue]) == 2
	assert (statuses(new), column(new)) == (["Completed"] * 3, "Completed")


def test_a_sequential_group_stops_after_a_failure(made, queue):
	new = made("good", "bad", "good", "good", mode="Sequential")
	drain.drain([queue])
	assert statuses(new) == ["Completed", "Dead Letter", "Canceled", "Canceled"]
	assert column(new) == "Partial"
	_first, failed, third, last = members(new)
	assert story(last)[-1] == ("Pending", "Canceled", "job.canceled")
	said = frappe.get_last_doc("Job Execution Log", {"background_job": third, "event": "job.canceled"})
	assert said.message == f"{failed} ended as Dead Letter"


def test_a_sequential_group_can_go_on_after_a_failure(made, queue):
	new = made("bad", "good", "good", mode="Sequential", on_failure="Continue")
	drain.drain([queue])
	assert (statuses(new), column(new)) == (["Dead Letter", "Completed", "Completed"], "Partial")


def test_a_member_that_is_tried_again_holds_the_others_back(made, queue):
	new = made("second_try", "good", mode="Sequential")
	drain.drain([queue])
	assert (statuses(new), column(new)) == (["Queued", "Pending"], "Running")
	fall_due(members(new)[0])
	drain.drain([queue])
	assert (statuses(new), column(new)) == (["Completed"] * 2, "Completed")


def test_a_successor_stands_for_the_member_that_failed(made, queue):
	new = made("new_job", "good", mode="Sequential")
	drain.drain([queue])
	assert statuses(new) == ["Failed", "Pending", "Pending"]
	assert (column(new), group_progress(new.name)["counts"]) == ("Running", {"Pending": 2})
	fall_due(members(new)[1])
	drain.drain([queue])
	assert statuses(new) == ["Failed", "Completed", "Completed"]
	assert (column(new), group_progress(new.name)["counts"]) == ("Completed", {"Completed": 2})


def test_progress_counts_members_and_how_far_they_are(made):
	new = made("good", "good", "good", "good")
	first, second, *_others = members(new)
	run_job(first)
	start_job(second)
	plant(second, progress=40)
	frappe.db.commit()
	progress = group_progress(new.name)
	counts = {"Queued": 2, "Running": 1, "Completed": 1}
	assert progress == {"status": "Running", "percent": 35, "total": 4, "ended": 1, "counts": counts}


def test_a_group_whose_only_runner_was_canceled_waits_again(made):
	new = made("stopping", "good")
	first, _waiting = members(new)
	cancel_in_mid_run(first)
	assert statuses(new) == ["Canceled", "Queued"]
	assert (column(new), group_status(new.name)) == ("Queued", "Queued")


def cancel_in_mid_run(job_name: str) -> None:
	from dartwing_jobs.engine import attempt

	started = start_job(job_name)
	cancel(job_name)
	frappe.db.commit()
	attempt.run(started)


# joining


def test_who_joins_stands_at_the_end(made, types, queue):
	new = made("good")
	assert join(new, types, job_queue=queue).position == 2
	assert join(new, types, job_queue=queue, position=7).position == 7
	assert join(new, types, job_queue=queue, position=4).position == 4
	assert join(new, types, job_queue=queue).position == 8
	drain.drain([queue])
	assert (statuses(new), column(new)) == (["Completed"] * 5, "Completed")


def test_many_join_at_once(made, types, queue):
	new = made("good", "good", mode="Sequential")
	names = submit_many(types["good"], [{}] * 3, new.organization, job_group=new.name, job_queue=queue)
	frappe.db.commit()
	assert members(new)[2:] == names
	assert [frappe.db.get_value("Background Job", name, "depends_on") for name in names] == members(new)[1:4]
	drain.drain([queue])
	assert statuses(new) == ["Completed"] * 5


def test_a_place_is_taken_once(made, types):
	new = made("good", "good")
	with pytest.raises(InvalidJobError, match="place 2 in Job Group"):
		join(new, types, position=2)
	with pytest.raises(InvalidJobError, match="is taken"):
		submit_many(types["good"], [{}, {}], new.organization, job_group=new.name, positions=[5, 5])


def test_who_joins_a_sequential_group_waits_for_the_last(made, types, queue):
	new = made("good", mode="Sequential")
	last = members(new)[0]
	joined = join(new, types, job_queue=queue)
	assert (joined.status, joined.depends_on, joined.on_parent_failure) == ("Pending", last, "Cancel")
	with pytest.raises(InvalidJobError, match="cannot depend on"):
		join(new, types, depends_on=last)
	frappe.db.rollback()
	with pytest.raises(InvalidJobError, match="only join behind"):
		join(new, types, position=1)


def test_a_document_joins_as_well(made, queue):
	new = made("good", mode="Sequential")
	job = make_job(new.organization, job_group=new.name, job_queue=queue)
	frappe.db.commit()
	assert (job.position, job.depends_on, job.run_at) == (2, members(new)[0], None)
	drain.drain([queue])
	assert (statuses(new), column(new)) == (["Completed"] * 2, "Completed")


def test_nobody_joins_a_group_that_has_ended(made, types, queue):
	new = made("good")
	drain.drain([queue])
	with pytest.raises(GroupEnded, match="has ended as Completed"):
		join(new, types)


def test_who_joins_while_the_last_member_ends_is_waited_for(made, types, queue):
	"""The one who joins has not committed yet: the last member's end must not be the group's."""
	new = made("good")
	with beside(join_slowly, (new.name, new.organization, types["good"], queue)) as joining:
		BARRIER.wait(10)  # it has joined, and waits
		run_job(members(new)[0])
		BARRIER.wait(10)
		joining.get(10)
	assert (statuses(new), group_status(new.name)) == (["Completed", "Queued"], "Running")
	sweep.sweep()  # who started and ended found the group's row taken
	assert column(new) == "Running"
	drain.drain([queue])
	assert column(new) == "Completed"


def join_slowly(name: str, organization: str, job_type: str, queue: str) -> None:
	submit(job_type, None, organization, job_group=name, job_queue=queue)
	BARRIER.wait(10)
	BARRIER.wait(10)
	frappe.db.commit()


def test_two_who_join_at_once_get_two_places(made, types):
	new = made("good")
	given = (new.name, new.organization, types["good"])
	places = in_other_processes(join_ten_times, given, given)
	assert sorted(places[0] + places[1]) == list(range(2, 22))


def join_ten_times(name: str, organization: str, job_type: str) -> list[int]:
	BARRIER.wait(10)
	join_once = database.own_transaction(
		lambda: submit(job_type, None, organization, job_group=name).position
	)
	return [join_once() for _time in range(10)]


# the end, and the callback


def test_the_callback_is_told_how_the_group_ended(world, made, queue, callback):
	new = made("good", "bad", on_completion=callback)
	drain.drain([queue])
	counts = {"Completed": 1, "Dead Letter": 1}
	told = {"mark": "mine", "group": new.name, "status": "Partial", "counts": counts}
	assert callbacks(callback) == [{**told, "owner": "Administrator"}]
	job = column(new, "callback_job")
	assert (stored_status(job), frappe.db.get_value("Background Job", job, "job_group")) == (
		"Completed",
		None,
	)


@pytest.mark.parametrize(
	("on", "kinds", "fires"),
	[
		("Success", ["good", "good"], True),
		("Success", ["good", "bad"], False),
		("Failure", ["good", "bad"], True),
		("Failure", ["good", "good"], False),
		("Any End", ["bad", "bad"], True),
	],
)
def test_the_callback_is_for_the_end_that_was_asked_for(made, queue, callback, on, kinds, fires):
	made(*kinds, on_completion={**callback, "on": on})
	drain.drain([queue])
	assert len(callbacks(callback)) == fires


@pytest.mark.parametrize(("on", "fires"), [("Any End", 1), ("Failure", 0)])
def test_a_canceled_group_has_ended_but_not_failed(made, callback, on, fires):
	new = made("good", "good", on_completion={**callback, "on": on})
	cancel_group(new.name)
	frappe.db.commit()
	assert (column(new), len(callbacks(callback))) == ("Canceled", fires)


def test_alike_callbacks_are_not_swallowed(made, queue, callback):
	"""Its type remembers for an hour what was submitted, and both groups end alike."""
	made("good", on_completion={**callback, "parameters": None})
	made("good", on_completion={**callback, "parameters": None})
	drain.drain([queue])
	assert len(callbacks(callback)) == 2


def test_a_callback_that_cannot_be_submitted_does_not_keep_the_group_open(made, queue, callback):
	new = made("good", on_completion=callback)
	frappe.db.set_value("Job Type", callback["job_type"], "is_enabled", 0)
	frappe.clear_document_cache("Job Type", callback["job_type"])
	drain.drain([queue])
	assert (column(new), callbacks(callback)) == ("Completed", [])
	assert "is disabled" in column(new, "callback_error")


def test_a_callback_runs_in_the_name_of_whoever_made_the_group(world, types, queue, callback):
	frappe.set_user(world.user_a)
	jobs = [{"job_type": types["good"], "job_queue": queue}]
	new = group("mine", jobs, organization=world.a, on_completion=callback)
	frappe.db.commit()
	frappe.set_user("Administrator")
	assert new.owner == world.user_a
	drain.drain([queue])
	assert [told["owner"] for told in callbacks(callback)] == [world.user_a]


def test_who_has_left_has_nothing_called_back(world, types, queue, callback):
	leaver = make_user("leaver", ["Dartwing User"], [world.a])
	frappe.set_user(leaver)
	new = group("left", [{"job_type": types["good"]}], organization=world.a, on_completion=callback)
	frappe.set_user("Administrator")
	frappe.db.delete("User Permission", {"user": leaver})
	frappe.clear_cache(user=leaver)
	frappe.db.commit()
	cancel(members(new)[0])
	frappe.db.commit()
	assert (column(new), callbacks(callback)) == ("Canceled", [])
	assert "is not in organization" in column(new, "callback_error")


@pytest.mark.parametrize(
	("type_fields", "error", "complaint"),
	[
		({"is_enabled": 0}, InvalidJobError, "disabled"),
		({"requires_permission": "Job Type:delete"}, frappe.PermissionError, "no delete permission"),
		({"parameters_schema": '{"maxProperties": 1}'}, InvalidJobError, "too many|maxProperties|at most"),
	],
)
def test_a_callback_that_could_never_be_submitted_is_refused(world, types, type_fields, error, complaint):
	job_type = make_job_type(**type_fields).name
	frappe.set_user(world.user_a)
	with pytest.raises(error, match=complaint):
		group("wrong", [{"job_type": types["good"]}], organization=world.a, on_completion=job_type)


@pytest.mark.parametrize(
	"fieldname", ["status", "last_position", "callback_job_type", "callback_on", "owner", "mode"]
)
def test_nobody_edits_what_the_callback_and_the_jobs_rest_on(made, world, fieldname):
	new = made("good")
	new.set(
		fieldname,
		{"last_position": 9, "owner": world.admin_a, "callback_job_type": REPEATABLE}.get(
			fieldname, "Success"
		),
	)
	with pytest.raises((FrozenFieldError, frappe.CannotChangeConstantError, frappe.ValidationError)):
		new.save()
	frappe.db.rollback()
	before = new.reload().get(fieldname)
	new.group_name = "another name"
	new.save()
	assert new.reload().get(fieldname) == before


def test_the_last_two_members_end_at_the_same_instant_and_call_back_once(made, callback):
	"""Two processes, each with its own member of each group, as close together as can be."""
	groups = [made("good", "good", on_completion=callback) for _number in range(8)]
	pairs = [members(new) for new in groups]
	in_other_processes(run_each, ([first for first, _last in pairs],), ([last for _first, last in pairs],))
	sweep.sweep()  # finds nothing to do
	assert [column(new) for new in groups] == ["Completed"] * 8
	assert len(callbacks(callback)) == 8


def run_each(job_names: list[str]) -> None:
	from dartwing_jobs.engine import attempt

	for name in job_names:
		started = start_job(name)
		BARRIER.wait(10)
		attempt.run(started)


@pytest.fixture
def crew():
	crew = workers.Crew()
	yield crew
	crew.of(0)


def test_two_workers_share_a_group_and_a_line_and_call_back_once_each(world, types, callback, crew):
	crew.of(2)
	queue = workers.make_queue()
	many = {"job_type": types["good"], "job_queue": queue, "parameters": [{}] * 40}
	made = [
		group(mode, many, organization=world.a, mode=mode, on_completion=callback)
		for mode in ("Parallel", "Sequential")
	]
	frappe.db.commit()
	workers.wait_until(lambda: all(column(new) == "Completed" for new in made), 30)
	assert [set(statuses(new)) for new in made] == [{"Completed"}] * 2
	assert sorted(told["group"] for told in callbacks(callback)) == sorted(new.name for new in made)
	workers.retire_queue(queue)


def test_a_sweep_settles_a_group_whose_last_worker_died_behind_its_commit(made, callback):
	new = made("deadly", on_completion=callback)
	(last,) = members(new)
	assert die(run_job, last) == -signal.SIGKILL
	assert (statuses(new), column(new), callbacks(callback)) == (["Completed"], "Running", [])
	sweep.sweep()
	sweep.sweep()
	assert (column(new), len(callbacks(callback))) == ("Completed", 1)


def die(function, *arguments) -> int:
	"""Calls something in another process that does not survive it; returns how it ended."""
	from dartwing_jobs.tests import processes

	def call() -> None:
		processes.connect_anew(frappe.local.site)
		function(*arguments)

	process = multiprocessing.get_context("fork").Process(target=call)
	process.start()
	process.join(20)
	return process.exitcode


def test_members_end_while_somebody_holds_the_groups_row(made, callback):
	"""However many end at once: none of them waits for the group."""
	new = made(*["good"] * 6, on_completion=callback)
	with beside(hold_the_row, (new.name,)) as holding:
		BARRIER.wait(10)
		began = time.monotonic()
		for name in members(new):
			run_job(name)
		took = time.monotonic() - began
		assert statuses(new) == ["Completed"] * 6
		BARRIER.wait(10)
		holding.get(10)
	assert took < 3
	assert column(new) != "Completed"
	sweep.sweep()
	assert (column(new), len(callbacks(callback))) == ("Completed", 1)


def hold_the_row(name: str) -> None:
	frappe.db.get_value("Job Group", name, "name", for_update=True)
	BARRIER.wait(10)
	BARRIER.wait(10)
	frappe.db.rollback()


def test_who_has_ended_is_not_read_again_and_again(made):
	"""Each look goes on where the last one found somebody; and somebody before that is found, too."""
	new = made(*["good"] * 5)
	names = members(new)
	for name in names[:3]:
		run_job(name)
	assert group_ends.has_unfinished(new.name)
	assert group_ends._seen[frappe.local.site, new.name] == 4
	for name in names[3:]:
		plant(name, status="Completed")
	plant(names[0], status="Queued")
	assert group_ends.has_unfinished(new.name)


# canceling


def test_a_group_is_canceled_as_one(made):
	new = made("stopping", "good", "good")
	running = members(new)[0]
	started = start_job(running)
	cancel_group(new.name, "enough")
	frappe.db.commit()
	assert (statuses(new), column(new)) == (["Running", "Canceled", "Canceled"], "Running")
	said = frappe.get_last_doc(
		"Job Execution Log", {"background_job": members(new)[1], "event": "job.canceled"}
	)
	assert (said.message, said.actor) == ("enough", "Administrator")
	from dartwing_jobs.engine import attempt

	attempt.run(started)
	assert (statuses(new), column(new)) == (["Canceled"] * 3, "Canceled")


def test_a_canceled_group_takes_nobody_and_is_canceled_once(made, types):
	new = made("stopping", "good")
	start_job(members(new)[0])
	cancel_group(new.name)
	frappe.db.commit()
	with pytest.raises(GroupEnded, match="being canceled"):
		join(new, types)
	frappe.db.rollback()
	ended = made("good")
	cancel_group(ended.name)
	frappe.db.commit()
	with pytest.raises(GroupEnded, match="has ended as Canceled"):
		cancel_group(ended.name)


def test_an_empty_group_can_be_canceled(world):
	new = group("empty", [], organization=world.a)
	assert group_status(new.name) == "Queued"
	cancel_group(new.name)
	frappe.db.commit()
	assert (column(new), group_status(new.name)) == ("Canceled", "Canceled")


def test_a_sweep_goes_on_with_a_cancel_that_was_cut_short(made):
	new = made("good", "good", mode="Sequential")
	assert die(cancel_and_die, new.name) == -signal.SIGKILL
	assert statuses(new) == ["Queued", "Pending"]
	sweep.sweep()
	assert (statuses(new), column(new)) == (["Canceled"] * 2, "Canceled")


def cancel_and_die(name: str) -> None:
	frappe.db.after_commit.add(lambda: os.kill(os.getpid(), signal.SIGKILL))
	cancel_group(name)
	frappe.db.commit()


def test_jobs_outside_that_wait_for_a_canceled_member_are_settled(made, types, world):
	new = made("good")
	child = submit(types["good"], None, world.a, depends_on=members(new)[0])
	frappe.db.commit()
	cancel_group(new.name)
	frappe.db.commit()
	frappe.db.rollback()
	assert stored_status(child.name) == "Canceled"


# repair


def test_a_replayed_member_takes_its_place_and_the_group_is_repaired(made, queue, callback):
	new = made("good", "bad", on_completion={**callback, "on": "Any End"})
	drain.drain([queue])
	dead = members(new)[1]
	assert (column(new), stored_status(dead)) == ("Partial", "Dead Letter")
	mend(dead)
	again = replay(dead)
	frappe.db.commit()
	assert (again.job_group, again.position) == (new.name, 2)
	assert (column(new), column(new, "ended_at")) == ("Running", None)
	drain.drain([queue])
	assert (column(new), group_status(new.name)) == ("Completed", "Completed")
	assert [told["status"] for told in callbacks(callback)] == ["Partial", "Completed"]


def test_a_replay_that_fails_again_calls_back_no_more(made, queue, callback):
	new = made("good", "bad", on_completion=callback)
	drain.drain([queue])
	replay(members(new)[1])
	frappe.db.commit()
	drain.drain([queue])
	assert (column(new), len(callbacks(callback))) == ("Partial", 1)


def test_a_place_is_done_when_one_of_several_replays_is(made, queue):
	new = made("bad")
	drain.drain([queue])
	dead = members(new)[0]
	replay(dead)
	frappe.db.commit()
	drain.drain([queue])
	mend(dead)
	replay(dead, again=True)
	frappe.db.commit()
	drain.drain([queue])
	assert statuses(new) == ["Dead Letter", "Dead Letter", "Completed"]
	assert (column(new), group_progress(new.name)["total"]) == ("Completed", 1)


def test_a_stopped_group_is_taken_up_again_place_by_place(made, queue):
	new = made("bad", "good", "good", mode="Sequential")
	drain.drain([queue])
	failed, *stopped = members(new)
	mend(failed)
	for name in (failed, *stopped):
		retry(name)
		frappe.db.commit()
	drain.drain([queue])
	assert (column(new), group_progress(new.name)["counts"]) == ("Completed", {"Completed": 3})
	assert group_progress(new.name)["total"] == 3


def test_a_member_of_a_canceled_group_that_is_retried_is_not_canceled_again(made, queue):
	new = made("good", "good")
	cancel_group(new.name)
	frappe.db.commit()
	frappe.db.rollback()
	again = retry(members(new)[0])
	frappe.db.commit()
	sweep.sweep()
	assert (column(new), column(new, "cancel_requested_at")) == ("Queued", None)
	run_job(again.name)
	assert (column(new), group_progress(new.name)["counts"]) == ("Partial", {"Completed": 1, "Canceled": 1})


def test_who_joins_behind_a_replay_waits_for_the_replay(made, types, queue):
	new = made("bad", mode="Sequential")
	drain.drain([queue])
	mend(members(new)[0])
	again = replay(members(new)[0])
	frappe.db.commit()
	assert join(new, types, job_queue=queue).depends_on == again.name
	drain.drain([queue])
	assert column(new) == "Completed"


def mend(dead: str) -> None:
	"""From here on it would succeed."""
	plant(dead, job_type=make_job_type(handler_method=HANDLERS["good"]).name)
	frappe.db.commit()


def test_a_job_whose_group_is_gone_can_be_replayed(made, queue):
	new = made("bad")
	drain.drain([queue])
	dead = members(new)[0]
	frappe.delete_doc("Job Group", new.name)
	assert replay(dead).job_group is None


# long lines


def test_a_long_line_stops_in_batches(world, types, queue):
	"""Longer than a stack is deep, and than one transaction should be."""
	jobs = [{"job_type": types["bad"], "job_queue": queue}]
	jobs += [{"job_type": types["good"], "job_queue": queue}] * 1200
	new = group("long", jobs, organization=world.a, mode="Sequential")
	frappe.db.commit()
	drain.drain([queue])
	assert (column(new), group_progress(new.name)["counts"]) == (
		"Partial",
		{"Dead Letter": 1, "Canceled": 1200},
	)
	told = statements.fetch(
		"""select count(distinct background_job) as jobs, count(*) as events from `tabJob Execution Log`
		where event = 'job.canceled' and background_job in (
		select name from `tabBackground Job` where job_group = %s)""",
		(new.name,),
	)[0]
	assert (told.jobs, told.events) == (1200, 1200)


@pytest.fixture
def line(world, types, queue):
	"""Jobs without a group, each waiting for the one before."""
	names = submit_many(types["good"], [{}] * 261, world.a, scheduled_for="2099-01-01 00:00:00")
	for before, name in pairwise(names):
		plant(name, depends_on=before, run_at=None)
	frappe.db.commit()
	return names


def test_a_line_without_a_group_is_settled_to_its_end(line):
	cancel(line[0])
	frappe.db.commit()
	frappe.db.rollback()
	assert {stored_status(name) for name in line} == {"Canceled"}


def test_a_sweep_goes_on_down_a_line_where_a_process_died(line):
	assert die(cancel_job_and_die, line[0]) == -signal.SIGKILL
	assert [stored_status(name) for name in line[:3]] == ["Canceled", "Canceled", "Pending"]
	sweep.sweep()
	frappe.db.rollback()
	assert {stored_status(name) for name in line} == {"Canceled"}


def cancel_job_and_die(name: str) -> None:
	frappe.db.after_commit.add(lambda: os.kill(os.getpid(), signal.SIGKILL))
	cancel(name)
	frappe.db.commit()


def test_more_children_than_a_batch_are_all_released(world, types, queue):
	parent = submit(types["good"], None, world.a, job_queue=queue).name
	children = submit_many(types["good"], [{}] * 450, world.a, depends_on=parent)
	frappe.db.commit()
	run_job(parent)
	frappe.db.rollback()
	(row,) = statements.fetch(
		"select count(*) as released from `tabBackground Job` where depends_on = %s and run_at is not null",
		(parent,),
	)
	assert row.released == len(children)


def test_a_child_of_a_job_that_was_tried_again_waits_for_its_successor(world, types, queue):
	failed = submit(types["new_job"], None, world.a, job_queue=queue).name
	frappe.db.commit()
	run_job(failed)
	child = submit(types["good"], None, world.a, depends_on=failed).name
	frappe.db.commit()
	frappe.db.rollback()
	successor = frappe.db.get_value("Background Job", child, "depends_on")
	assert frappe.db.get_value("Background Job", successor, "retry_of") == failed


def test_a_submitter_who_has_not_committed_does_not_hold_up_the_parent(world, types):
	parent = submit(types["good"], None, world.a).name
	submit(types["good"], None, world.a, depends_on=parent)
	frappe.db.commit()
	with beside(submit_child_slowly, (parent, world.a, types["good"])) as submitting:
		BARRIER.wait(10)
		began = time.monotonic()
		cancel(parent)
		frappe.db.commit()
		assert time.monotonic() - began < 3
		BARRIER.wait(10)
		child = submitting.get(10)
	frappe.db.rollback()
	assert stored_status(child) == "Canceled"


def submit_child_slowly(parent: str, organization: str, job_type: str) -> str:
	child = submit(job_type, None, organization, depends_on=parent).name
	BARRIER.wait(10)
	BARRIER.wait(10)
	frappe.db.commit()
	return child


# the end of all things


def test_a_group_goes_with_its_jobs_and_leaves_its_callback(made, queue, callback):
	new = made("good", "good", on_completion=callback)
	drain.drain([queue])
	called = column(new, "callback_job")
	old = frappe.utils.get_datetime("2020-01-01")
	for name in members(new):
		frappe.db.set_value("Background Job", name, "modified", old, update_modified=False)
	frappe.db.commit()
	retention.delete_expired_jobs(frappe.utils.now_datetime())
	frappe.db.rollback()
	assert (frappe.db.exists("Job Group", new.name), stored_status(called)) == (None, "Completed")


def test_who_stands_behind_a_canceled_member_waits_for_the_one_before_it(made):
	"""With Continue: an end before its turn must not let two run side by side."""
	new = made("good", "good", "good", mode="Sequential", on_failure="Continue")
	first, second, third = members(new)
	start_job(first)
	frappe.db.commit()
	cancel(second)
	frappe.db.commit()
	assert statuses(new) == ["Running", "Canceled", "Pending"]
	assert frappe.db.get_value("Background Job", third, "depends_on") == first


def test_cancel_of_a_long_line_lets_nobody_start(made):
	new = made(*["good"] * 203, mode="Sequential", on_failure="Continue")
	names = members(new)
	start_job(names[0])
	frappe.db.commit()
	cancel_group(new.name)
	frappe.db.commit()
	assert all("job.enqueued" not in [event for *_, event in story(name)] for name in names[1:])
	assert set(statuses(new)[1:]) == {"Canceled"}


def test_two_who_stand_in_for_one_are_told_of_once_behind_them(made, queue):
	new = made("good", "bad", "good", "good", "good", mode="Sequential")
	drain.drain([queue])
	_first, dead, third, fourth, last = members(new)
	again = [replay(dead).name]
	for name in (third, fourth, fourth, last):
		frappe.db.commit()
		again.append(retry(name, again=True).name)
	frappe.db.commit()
	drain.drain([queue])
	assert len(story(again[-1])) == 2


def test_only_who_sees_a_group_joins_it(world, types, queue):
	one, other = (make_user(name, ["Dartwing User"], [world.a]) for name in ("one", "other"))
	frappe.db.commit()
	frappe.set_user(one)
	new = group("mine", [{"job_type": types["good"], "job_queue": queue}], organization=world.a)
	frappe.db.commit()
	frappe.set_user(other)
	with pytest.raises(frappe.LinkValidationError, match="Could not find"):
		submit(types["good"], None, world.a, job_group=new.name, job_queue=queue)
	frappe.set_user(one)
	assert submit(types["good"], None, world.a, job_group=new.name, job_queue=queue).position == 2


def test_a_group_keeps_its_end_when_some_members_are_deleted(world, queue):
	kinds = [make_job_type(handler_method=HANDLERS[kind], retention_days=days).name for kind, days in END_OF]
	jobs = [{"job_type": kind, "job_queue": queue} for kind in kinds]
	new = group("g", jobs, organization=world.a)
	frappe.db.commit()
	drain.drain([queue])
	for name in members(new):
		plant(name, modified=clock.now() - timedelta(days=2))
	frappe.db.commit()
	retention.delete_expired_jobs(clock.now())
	assert (statuses(new), group_status(new.name)) == (["Completed"], "Partial")


def test_who_joins_while_a_group_is_settled_is_counted(made, types, queue, callback, monkeypatch):
	"""In a web request: its snapshot may be older than somebody's joining."""
	new = made("good", on_completion=callback)
	real = group_ends.has_unfinished

	def looks_long(name: str) -> bool:
		found = real(name)
		monkeypatch.setattr(group_ends, "has_unfinished", real)
		in_other_processes(joins, (new.name, new.organization, types["good"], queue))
		return found

	monkeypatch.setattr(group_ends, "has_unfinished", looks_long)
	cancel(members(new)[0])
	frappe.db.commit()
	assert callbacks(callback) == [] and column(new) == "Queued"


def joins(name: str, organization: str, job_type: str, queue: str) -> None:
	submit(job_type, None, organization, job_group=name, job_queue=queue)
	frappe.db.commit()


def test_a_conflict_behind_a_commit_takes_nothing_else_away(made, types, queue, world, monkeypatch):
	"""Frappe forgets what is to be done after a commit when anything is rolled back meanwhile."""
	new = made("good", "good", mode="Sequential")
	real, met = dependents._how_they_ended, []

	def meets_another(parents: list) -> tuple:
		if not met:
			met.append(parents)
			raise frappe.QueryDeadlockError("another was first")
		return real(parents)

	monkeypatch.setattr(dependents, "_how_they_ended", meets_another)
	done = []
	submit(types["good"], None, world.a, job_group=new.name, job_queue=queue)
	frappe.db.after_commit.add(lambda: done.append("mail"))
	frappe.db.commit()
	assert met and done == ["mail"]


def test_a_listener_that_fails_keeps_nobody_from_hearing(made, queue, monkeypatch):
	new = made("bad", "good", "good", "good", mode="Sequential")

	def fails(job, from_status) -> None:
		raise frappe.ValidationError("the webhook is down")

	monkeypatch.setattr(listeners, "somebody_listens", lambda: True)
	monkeypatch.setattr(listeners, "_run_events", fails)
	drain.drain([queue])
	assert statuses(new) == ["Dead Letter", "Canceled", "Canceled", "Canceled"]


def test_a_group_hears_of_an_end_whose_first_commit_was_refused(world, queue, callback):
	job_type = make_job_type(handler_method="dartwing_jobs.tests.grouping.refuse_the_commit").name
	jobs = [{"job_type": job_type, "job_queue": queue}]
	new = group("g", jobs, organization=world.a, on_completion=callback)
	frappe.db.commit()
	drain.drain([queue])
	assert column(new) == "Partial" and len(callbacks(callback)) == 1
