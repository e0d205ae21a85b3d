"""Which errors may go away: by what their class says, never by what they happen to carry."""

import http
import io
import urllib.error
from email.message import Message
from types import SimpleNamespace

import frappe
import pytest
from werkzeug import exceptions

from dartwing_jobs import PermanentError, TransientError
from dartwing_jobs.engine.rules import classification


def asked(status: int) -> urllib.error.HTTPError:
	"""What urllib raises for a server's answer."""
	return urllib.error.HTTPError("https://example.com", status, "told", Message(), io.BytesIO())


class ForeignError(Exception):
	"""Of a library for printers, say: its codes are its own."""

	def __init__(self, code):
		super().__init__(f"code {code}")
		self.code = code


class InvalidForeignError(ForeignError, frappe.ValidationError):
	pass


class SpeakingError(Exception):
	"""Its class says what its code is, as those of some clients of web services do."""

	code = http.HTTPStatus.NOT_FOUND


class SpeakingBusyError(SpeakingError):
	code = http.HTTPStatus.SERVICE_UNAVAILABLE


class AnsweredError(Exception):
	"""As requests and httpx raise them."""

	def __init__(self, status_code):
		self.response = SimpleNamespace(status_code=status_code, headers={})


@pytest.mark.parametrize("code", [0, 1, 4, 7, 200, 400, 403, 404, 429, 500, 503, 5000, -1, True])
def test_the_code_of_a_foreign_error_is_no_http_status(code):
	assert classification.http_status(ForeignError(code)) is None
	assert classification.kind_of(ForeignError(code)) == classification.UNKNOWN
	assert classification.kind_of(InvalidForeignError(code)) == classification.PERMANENT


@pytest.mark.parametrize(
	("error", "status", "is_transient"),
	[
		(asked(404), 404, False),
		(asked(429), 429, True),
		(asked(503), 503, True),
		(exceptions.NotFound(), 404, False),
		(exceptions.BadGateway(), 502, True),
		(SpeakingError(), 404, False),
		(SpeakingBusyError(), 503, True),
		(AnsweredError(400), 400, False),
		(AnsweredError(502), 502, True),
	],
)
def test_the_status_of_an_http_error_counts(error, status, is_transient):
	assert classification.http_status(error) == status
	kind = classification.TRANSIENT if is_transient else classification.PERMANENT
	assert classification.kind_of(error) == kind


@pytest.mark.parametrize("status", [0, -1, 99, 600, 5000, True, "503", None])
def test_what_is_no_status_does_not_count(status):
	assert classification.http_status(AnsweredError(status)) is None


def test_our_own_words_win():
	class Busy(TransientError):
		code = http.HTTPStatus.NOT_FOUND

	assert classification.kind_of(Busy("busy")) == classification.TRANSIENT
	assert classification.kind_of(PermanentError("no")) == classification.PERMANENT
