"""The product at work, in a terminal: two organizations submit jobs, two workers run them, and one can watch.

Runs inside a home, started by bin/demo, which ends what is left running.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import frappe

import dartwing_jobs
from dartwing_jobs.tests.world import make_organization, make_user
from homes import demo, process, table

TYPES = {
	"demo_steps": ("Count to a number", "execute_sample_job", {}),
	"demo_flaky": ("Fail at first, then succeed", "fail_for_a_while", {"backoff_base_seconds": 1}),
	"demo_hopeless": ("Fail for good", "fail_for_good", {}),
}
PATIENCE_SECONDS = 120
USUAL_PORT = 8000


def main() -> int:
	arguments = demo.options().parse_args()
	sys.stdout.reconfigure(errors="replace")  # not each terminal can draw a bar
	frappe.init(os.environ["SITE"])
	frappe.connect()
	for command in (["worker"], ["worker"], ["schedule"]):
		_start(*command)
	port = _serve(arguments.port)
	people = _make_people()
	expected = _submit_jobs(people)
	as_expected = _watch(expected)
	frappe.db.rollback()
	print("\nAll ended as expected." if as_expected else "\nSomething did not end as expected.")
	if arguments.once:
		return 0 if as_expected else 1
	_stay(people, port)
	return 0


def _serve(wish: int | None) -> int:
	"""Serves the API, on the port that was wished for, or else on any; returns the port, which answers."""
	port = wish or USUAL_PORT
	if not wish and process.why_not_free(port):
		port = process.free_port()
		print(f"Port {USUAL_PORT} is taken: the API is served on port {port}.")
	server, log = _start("serve", "--port", str(port))
	# its own word, because another program may answer on that port
	process.wait_until(lambda: b"Running on" in log.read_bytes(), server, log)
	return port


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
	until, drawn, live = time.monotonic() + PATIENCE_SECONDS, 0, table.is_live(len(expected))
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
		ended = all(job.status == expected[job.name] for job in jobs) or time.monotonic() > until
		if drawn and (live or ended):
			print(f"\033[{drawn}A" if live else "\n", end="")
		if live or ended or not drawn:
			table.draw(jobs)
			drawn = len(jobs)
		if ended:
			return all(job.status == expected[job.name] for job in jobs)
		time.sleep(0.2)


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
	print("\nbin/shell in another terminal joins this site. Ctrl-C stops everything.", flush=True)
	with contextlib.suppress(KeyboardInterrupt):
		signal.pause()


def _start(*command: str) -> tuple[subprocess.Popen, Path]:
	log = Path("..", "logs", f"{command[0]}.log").resolve()
	whole = [
		sys.executable,
		"-m",
		"frappe.utils.bench_helper",
		"frappe",
		"--site",
		os.environ["SITE"],
		*command,
	]
	return process.spawn(whole, log, signal.SIGTERM, cwd=Path.cwd()), log


if __name__ == "__main__":
	try:
		sys.exit(main())
	except KeyboardInterrupt:
		sys.exit(128 + signal.SIGINT)
	except RuntimeError as error:
		sys.exit(str(error))
