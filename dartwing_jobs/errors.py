"""What goes wrong, as classes: callers tell errors apart by class, never by text."""

import frappe


class InvalidJobError(frappe.ValidationError):
	"""What was submitted cannot become a job, or not this way."""


class KeyConflict(InvalidJobError):
	"""An idempotency key was given again, with other parameters than the first time."""

	http_status_code = 409


class DuplicateJob(InvalidJobError):
	"""The same was submitted before, and the submitter asked to be refused then."""

	http_status_code = 409


class SecretInPayload(InvalidJobError):
	"""Parameters hold a password, a key or a token: many people and logs would see it."""


class FrozenFieldError(frappe.ValidationError):
	"""Somebody tried to change what only the engine changes."""


class EngineOwnedError(frappe.ValidationError):
	"""Somebody tried to write, change or delete a record that only the engine writes."""


class TransientError(Exception):
	"""Raised by a handler: this may go away, try again (after `retry_after` seconds, if given)."""

	def __init__(self, *args, retry_after: float | None = None):
		super().__init__(*args)
		self.retry_after = retry_after


class QueueFull(InvalidJobError):
	"""So many jobs wait already that no more are taken; later there will be room again."""

	http_status_code = 429


class PermanentError(Exception):
	"""Raised by a handler: this will not go away, do not try again."""


class SubmitConflict(TransientError):
	"""A submit or a cancel met another transaction. Roll back and do the whole again: it may well succeed."""

	http_status_code = 409


class WriteNotAllowed(PermanentError):
	"""A handler tried to write what its Job Type may not write."""


class ResultNotStorable(PermanentError, ValueError):
	"""What a handler gives back has no form in which it could be kept."""


class EndNotStored(PermanentError):
	"""The database refused to store how a handler ended."""


class FrappeEnded(PermanentError):
	"""A handler has ended Frappe, or turned to another site: what it wrote is lost."""


class WorkNotDone(PermanentError):
	"""A handler returned something that would have to be awaited or iterated over: nothing of it has run."""


class InputChanged(PermanentError):
	"""A file that a job was submitted with is not the same any more, or gone."""


class JobCanceled(Exception):
	"""Raised by a checkpoint: somebody asked for this job to be canceled."""

	def __init__(self, *args, requested_by: str | None = None):
		super().__init__(*args)
		self.requested_by = requested_by


class WorkerStopping(Exception):
	"""Raised by a checkpoint: the worker is being shut down; the job goes back, uncounted."""


class LeaseLost(Exception):
	"""The job belongs to another worker now: nothing that this one still does may be kept."""


class JobTimeout(BaseException):
	"""The deadline has passed. No Exception: a handler's `except Exception` must not swallow it."""


class WorkerLost(Exception):
	"""The process that ran a job died, or no longer renewed its lease."""


class GroupEnded(InvalidJobError):
	"""A group has ended, or is being canceled: nobody can join it any more."""

	http_status_code = 409


class EngineFailed(Exception):
	"""What ended a message of the engine, without secrets. The original error is not kept."""
