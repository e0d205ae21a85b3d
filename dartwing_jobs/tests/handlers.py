"""Handlers that obey and misbehave, for tests."""

import os
import signal
import socket
import time

import frappe

from dartwing_jobs.engine.handling.context import Snooze
from dartwing_jobs.engine.handling.handlers import job_handler
from dartwing_jobs.errors import TransientError, WorkerStopping


@job_handler
def note_process(parameters: dict, context) -> dict:
	return {"pid": os.getpid()}


@job_handler
def report_and_sleep(parameters: dict, context) -> None:
	context.progress(40, "busy")
	time.sleep(parameters["seconds"])


@job_handler
def step_for_a_minute(parameters: dict, context) -> None:
	for _step in range(600):
		time.sleep(0.1)
		context.checkpoint()


@job_handler
def sleep(parameters: dict, context) -> None:
	time.sleep(60)


@job_handler
def wait_for_file(parameters: dict, context) -> None:
	while not os.path.exists(parameters["path"]):
		time.sleep(0.005)


@job_handler
def swallow_everything(parameters: dict, context) -> None:
	while True:
		try:
			time.sleep(0.1)
		except:  # noqa: E722
			continue


@job_handler
def hold_the_gil(parameters: dict, context) -> None:
	# one call that stays in C for hours and never looks for signals, as a regular expression would
	sum(range(10**13))


@job_handler
def read_a_silent_socket(parameters: dict, context) -> None:
	here, _there = socket.socketpair()
	here.recv(1)


@job_handler
def kill_the_process_once(parameters: dict, context) -> None:
	if context.attempt == 1:
		time.sleep(1)
		os.kill(os.getpid(), signal.SIGKILL)


@job_handler
def snooze_once(parameters: dict, context):
	if frappe.db.get_value("Background Job", context.job_name, "project_id") != "slept":
		return Snooze(60)
	return "awake"


@job_handler
def snooze_as_told(parameters: dict, context) -> Snooze:
	if frappe.db.get_value("Background Job", context.job_name, "project_id") == "fail":
		raise TransientError("The service is busy")
	return Snooze(parameters["seconds"])


@job_handler
def submit_critical(parameters: dict, context) -> None:
	context.submit("sample_job", {}, priority="Critical", project_id=context.job_name)


@job_handler
def hand_back(parameters: dict, context) -> None:
	raise WorkerStopping("The worker was stopped")


@job_handler
def spoil_then_fail(parameters: dict, context) -> None:
	parameters["steps"].clear()
	raise TransientError("The service is busy")


@job_handler
def tell_too_much(parameters: dict, context) -> None:
	context.output_reference = "x" * 1000
