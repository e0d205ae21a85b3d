"""Handlers whose end is hard to write down, for tests: each says or raises what no database stores."""

import asyncio
from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace

import frappe

from dartwing_jobs import PermanentError, Snooze, TransientError, job_handler
from dartwing_jobs.errors import JobCanceled, WorkerStopping
from dartwing_jobs.tests import effects

HALF = "caf\udce9.csv"  # a file name that is no UTF-8, as Python reads it
NUL = "bad \x00 byte"


class Mute(PermanentError):
	"""Its text cannot be read."""

	def __str__(self) -> str:
		raise RuntimeError("no text")


class MuteForAMoment(TransientError):
	def __str__(self) -> str:
		raise RuntimeError("no text")


class Prickly(PermanentError):
	"""Whatever is asked of it fails."""

	@property
	def response(self):
		raise RuntimeError("do not ask")

	code = http_status_code = retry_after = headers = response


class Leaving(PermanentError):
	"""Whatever is asked of it ends the process."""

	@property
	def response(self):
		raise SystemExit("asked too much")

	code = http_status_code = retry_after = headers = response


class NoNumber:
	"""What stands where a number, or headers, should be."""

	def __float__(self) -> float:
		raise RuntimeError("no number")

	def __bool__(self) -> bool:
		raise RuntimeError("neither true nor false")


class SlowDown(TransientError):
	"""As another library's: it says how long to wait in its own way."""

	def __init__(self, **said):
		super().__init__("slow down")
		vars(self).update(said)


ERRORS = {
	"permanent_half": lambda: PermanentError(HALF),
	"permanent_nul": lambda: PermanentError(NUL),
	"transient_half": lambda: TransientError(HALF),
	"transient_nul": lambda: TransientError(NUL),
	"mute": Mute,
	"mute_for_a_moment": MuteForAMoment,
	"prickly": Prickly,
	"leaving": lambda: Leaving("leave me alone"),
	"named_oddly": lambda: type("Odd", (PermanentError,), {"__qualname__": HALF * 100})("odd"),
	"exit": lambda: SystemExit(1),
	"interrupt": KeyboardInterrupt,
	"generator_exit": GeneratorExit,
	"cancelled": asyncio.CancelledError,
	"stopping_half": lambda: WorkerStopping(f"{HALF}{NUL}"),
	"canceled_by_nobody": lambda: JobCanceled("stop", requested_by="x" * 500),
}
WAITS = {
	"inf": {"retry_after": float("inf")},
	"huge": {"retry_after": 1e12},
	"timedelta": {"retry_after": timedelta(seconds=5)},
	"long timedelta": {"retry_after": timedelta.max},
	"header": {"response": SimpleNamespace(headers={"Retry-After": "1e12"}, status_code=503)},
	"no headers": {"headers": [("Retry-After", "5")]},
	"no number": {"retry_after": NoNumber()},
	"a zone without end": {"headers": {"Retry-After": f"Wed, 21 Oct 2015 07:28:00 +{'9' * 20}"}},
	"a year without end": {"headers": {"Retry-After": f"Wed, 21 Oct {'9' * 20} 07:28:00 GMT"}},
	"headers that fail": {"response": SimpleNamespace(headers=NoNumber(), status_code=503)},
}
# for all others the usual wait follows
LONG_WAITS = {"huge", "long timedelta", "header"}


@job_handler
def fail_as(parameters: dict, context) -> None:
	effects.leave(frappe.generate_hash(length=20), context.job_name)
	raise ERRORS[parameters["error"]]()


@job_handler
def ask_to_wait(parameters: dict, context) -> None:
	raise SlowDown(**WAITS[parameters["wait"]])


@job_handler
def say_everything(parameters: dict, context) -> dict:
	"""Ends well, whatever its texts are."""
	context.progress(50, HALF + NUL)
	context.log(HALF + NUL)
	context.output_reference = HALF + NUL
	return {HALF: NUL}


@job_handler
def cost(parameters: dict, context) -> None:
	"""`cents` is given as a text, for JSON has no such numbers."""
	context.cost_cents += Decimal(parameters["cents"])


@job_handler
def cost_too_much(parameters: dict, context) -> None:
	context.cost_cents = 10**400


@job_handler
def cost_a_word(parameters: dict, context) -> None:
	context.cost_cents = "much"


@job_handler
def refer_too_far(parameters: dict, context) -> None:
	context.output_reference = "x" * 141


@job_handler
def snooze_for_ever(parameters: dict, context) -> Snooze:
	snooze = Snooze(60)
	snooze.seconds = float("inf")
	return snooze


@job_handler
def end_frappe(parameters: dict, context) -> None:
	if not parameters.get("may_not_write"):
		effects.leave(frappe.generate_hash(length=20), context.job_name)
	frappe.destroy()
	if parameters.get("fail"):
		raise PermanentError("after the end")


@job_handler
def connect_anew(parameters: dict, context) -> None:
	"""As scripts do that are to run anywhere."""
	effects.leave(frappe.generate_hash(length=20), context.job_name)
	frappe.init(frappe.local.site, force=True)
	frappe.connect()


@job_handler
def become_another_site(parameters: dict, context) -> None:
	frappe.local.site = "another.example"


def _circle() -> list:
	circle = []
	circle.append(circle)
	return circle


def _depth() -> list:
	depth = []
	for _level in range(100_000):
		depth = [depth]
	return depth


class Silent:
	def __str__(self) -> str:
		raise RuntimeError("no text")


RESULTS = {
	"circle": _circle,
	"depth": _depth,
	"keys that are no texts": lambda: {(1, 2): 3},
	"a number without end": lambda: 10**5000,
	"an object without a text": Silent,
}


@job_handler
def give_back_what_cannot_be_kept(parameters: dict, context):
	effects.leave(frappe.generate_hash(length=20), context.job_name)
	return RESULTS[parameters["result"]]()


@job_handler
def remember_what_cannot_be_kept(parameters: dict, context):
	return context.idempotent("step", RESULTS[parameters["result"]])


@job_handler
def remember_what_json_lacks(parameters: dict, context):
	return context.idempotent(HALF, lambda: {"mean": float("nan"), "name": HALF})


@job_handler
def give_back_fifty_megabytes(parameters: dict, context) -> list:
	return ["password: hunter2-hunter2", *(["x" * 1000] * 50_000)]


@job_handler
def say_what_is_refused(parameters: dict, context) -> dict:
	"""What a rule in the database refuses; see the test."""
	if parameters.get("error") == "transient":
		raise TransientError(parameters["text"])
	if parameters.get("error") == "permanent":
		raise PermanentError(parameters["text"])
	return {"text": parameters["text"]}
