"""Talks HTTP to the site under test as one of its users, through the real WSGI application."""

import contextvars
import json

import frappe
from werkzeug.test import Client


class Browser:
	"""One user with an API key. Each request runs in a context of its own, as in a web worker."""

	def __init__(self, user: str):
		self.user = user
		self.token = _token(user)

	@classmethod
	def of_nobody(cls) -> "Browser":
		"""A visitor who has not logged in, and shows no key."""
		browser = cls.__new__(cls)
		browser.user, browser.token = "Guest", None
		return browser

	def get(self, path: str, /, **query):
		return self._open("GET", path, query_string={key: _text(value) for key, value in query.items()})

	def post(self, path: str, /, **body):
		return self._open("POST", path, json=body)

	def put(self, path: str, /, **body):
		return self._open("PUT", path, json=body)

	def delete(self, path: str):
		return self._open("DELETE", path)

	def call(self, method: str, /, **arguments):
		"""A whitelisted method, by POST."""
		return self.post(f"/api/method/{method}", **arguments)

	def _open(self, verb: str, path: str, **options):
		headers = {"X-Frappe-Site-Name": frappe.local.site}
		if self.token:
			headers["Authorization"] = f"token {self.token}"
		return contextvars.Context().run(self._request, verb, path, headers, options)

	@staticmethod
	def _request(verb: str, path: str, headers: dict, options: dict):
		from frappe.app import application

		return Client(application).open(path, method=verb, headers=headers, **options)


def _token(user: str) -> str:
	from frappe.core.doctype.user.user import generate_keys

	secret = generate_keys(user)["api_secret"]
	frappe.db.commit()
	return f"{frappe.db.get_value('User', user, 'api_key')}:{secret}"


def _text(value) -> str:
	return value if isinstance(value, str) else json.dumps(value)
