"""The product at work, in a terminal: two organizations submit jobs, two workers run them, and one can watch.

Runs inside a home, started by bin/demo: `python -m homes.demo [--once] [--port PORT]`.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import time

import frappe

import dartwing_jobs
from dartwing_jobs.tests.world import make_organization, make_user

TYPES = {
	"demo_steps": ("Count to a number", "execute_sample_job", {}),
	"demo_flaky": ("Fail at first, then succeed", "fail_for_a_while", {"backoff_base_seconds": 1}),
	"demo_hopeless": ("Fail for good", "fail_for_good", {}),
}
COLOURS = {"Completed": 32, "Running": 36, "Dead Letter": 31, "Canceled": 35, "Failed": 33, "Timed Out": 33}
PATIENCE_SECONDS = 120


def main() -> int:
	arguments = _parse()
	frappe.init(os.environ["SITE"])
	frappe.connect()
	with contextlib.ExitStack() as stack:
		for command in (["worker"], ["worker"], ["schedule"]):
			_start(stack, *command)
		_start(stack, "serve", "--port", str(arguments.port))
		people = _make_people()
		expected = _submit_jobs(people)
		as_expected = _watch(expected)
		frappe.db.rollback()
		print("\nAll ended as expected." if as_expected else "\nSomething did not end as expected.")
		if arguments.once:
			return 0 if as_expected else 1
		_stay(people, arguments.port)
	return 0


def _make_people() -> dict[str, str]:
	for name, (label, handler, options) in TYPES.items():
		if not frappe.db.exists("Job Type", name):
			path = f"dartwing_jobs.samples.{handler}"
			values = {"type_name": name, "display_name": label, "handler_method": path}
			values |= {"deduplication_window": 0, **options}
			frappe.get_doc({"doctype": "Job Type", **values}).insert()
	people = {}
	for label in ("Acme", "Globex"):
		organization = make_organization(label)
		people[organization] = make_user(label.lower(), ["Dartwing User"], [organization])
	frappe.db.commit()
	return people


def _submit_jobs(people: dict[str, str]) -> dict[str, str]:
	"""Submits as each organization's user; returns how each job should end."""
	expected = {}
	for organization, user in people.items():
		frappe.set_user(user)

		def submit(job_type: str, end: str, parameters: dict, organization=organization, **options) -> str:
			job = dartwing_jobs.submit(job_type, parameters, organization, **options)
			expected[job.name] = end
			return job.name

		parent = submit("demo_steps", "Completed", {"steps": 20, "seconds": 0.15})
		submit("demo_steps", "Completed", {"steps": 5, "seconds": 0.1}, depends_on=parent)
		submit("demo_steps", "Completed", {"steps": 10, "seconds": 0.1}, priority="High")
		submit("demo_flaky", "Completed", {"attempts": 3})
		submit("demo_hopeless", "Dead Letter", {})
		dartwing_jobs.cancel(
			submit("demo_steps", "Canceled", {"steps": 9}, scheduled_for="2099-01-01 00:00:00")
		)
		expected.update(_submit_group(organization))
	frappe.set_user("Administrator")
	expected.update({_fire_schedule(organization): "Completed" for organization in people})
	frappe.db.commit()
	return expected


def _submit_group(organization: str) -> dict[str, str]:
	"""Three jobs, one after the other."""
	line = {"job_type": "demo_steps", "parameters": [{"steps": steps, "seconds": 0.1} for steps in (4, 3, 2)]}
	made = dartwing_jobs.group("One after the other", line, organization=organization, mode="Sequential")
	return dict.fromkeys(
		frappe.get_all("Background Job", {"job_group": made.name}, pluck="name"), "Completed"
	)


def _fire_schedule(organization: str) -> str:
	"""A job that comes every night, forced to come now."""
	options = {"job_type": "demo_steps", "parameters": {"steps": 3}, "time_zone": "Europe/Paris"}
	made = dartwing_jobs.schedule("Every night", "0 3 * * *", organization=organization, **options)
	return dartwing_jobs.trigger_schedule(made.name)


def _watch(expected: dict[str, str]) -> bool:
	"""Shows the jobs until all have ended; True if each ended as it should."""
	until, drawn = time.monotonic() + PATIENCE_SECONDS, 0
	while True:
		frappe.db.rollback()
		fields = [
			"name",
			"organization",
			"job_type",
			"status",
			"progress",
			"progress_message",
			"attempt",
			"error_message",
		]
		jobs = frappe.get_all(
			"Background Job", filters={"name": ["in", list(expected)]}, fields=fields, order_by="name"
		)
		if drawn and sys.stdout.isatty():
			print(f"\033[{drawn}A", end="")
		if sys.stdout.isatty() or not drawn:
			drawn = _draw(jobs)
		if all(job.status == expected[job.name] for job in jobs) or time.monotonic() > until:
			if not sys.stdout.isatty():
				_draw(jobs)
			return all(job.status == expected[job.name] for job in jobs)
		time.sleep(0.2)


def _draw(jobs: list) -> int:
	for job in jobs:
		bar = ("█" * round(job.progress / 5)).ljust(20, "░")
		note = (job.progress_message or job.error_message or "")[:32]
		status = f"\033[{COLOURS.get(job.status, 0)}m{job.status:<11}\033[0m"
		print(f"{job.name}  {job.organization[:16]:<16}  {job.job_type:<13}  {status}", end="  ")
		print(f"{bar} {job.progress:>4.0f}%  attempt {job.attempt}  {note:<32}")
	return len(jobs)


def _stay(people: dict[str, str], port: int) -> None:
	from frappe.core.doctype.user.user import generate_keys

	user = next(iter(people.values()))
	secret = generate_keys(user)["api_secret"]
	frappe.db.commit()
	key = frappe.db.get_value("User", user, "api_key")
	address = f"http://127.0.0.1:{port}/api/method/dartwing_jobs.api.jobs"
	print(f"\nServing on http://127.0.0.1:{port}. As {user}:\n")
	print(f"  curl -H 'Authorization: token {key}:{secret}' {address}.list_jobs")
	print(f"  curl -H 'Authorization: token {key}:{secret}' -d job_type=demo_steps {address}.submit")
	print("\nCtrl-C stops everything.", flush=True)
	with contextlib.suppress(KeyboardInterrupt):
		while True:
			time.sleep(3600)


def _start(stack: contextlib.ExitStack, *command: str) -> None:
	process = subprocess.Popen(
		[sys.executable, "-m", "frappe.utils.bench_helper", "frappe", "--site", os.environ["SITE"], *command],
		stdout=subprocess.DEVNULL,
		stderr=subprocess.DEVNULL,
		start_new_session=True,
	)

	def stop() -> None:
		process.terminate()
		try:
			process.wait(10)
		except subprocess.TimeoutExpired:
			process.kill()
			process.wait()

	stack.callback(stop)


def _parse() -> argparse.Namespace:
	parser = argparse.ArgumentParser(prog="bin/demo", description="The app at work on the embedded site.")
	parser.add_argument(
		"--once", action="store_true", help="end when all jobs have ended; fail unless as expected"
	)
	parser.add_argument("--port", type=int, default=8000)
	return parser.parse_args()


if __name__ == "__main__":
	sys.exit(main())
