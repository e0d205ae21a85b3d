"""The WSGI application: one request, one site context, one transaction."""

import contextlib
from collections.abc import Callable, Iterable

import frappe
import frappe.api
from frappe.core.doctype.file.file import download_private_file
from werkzeug.exceptions import HTTPException
from werkzeug.serving import run_simple
from werkzeug.wrappers import Request, Response


def application(environ: dict, start_response: Callable) -> Iterable[bytes]:
	try:
		try:
			response = _answer(Request(environ))
		except Exception as error:
			response = _handle_exception(error)
		for hook in frappe.get_hooks("after_request") if getattr(frappe.local, "db", None) else ():
			frappe.get_attr(hook)(response=response, request=frappe.local.request)
	finally:
		frappe.destroy()
	return response(environ, start_response)


def _answer(request: Request) -> Response:
	frappe.local.request = request
	frappe.init(request.headers.get("X-Frappe-Site-Name") or request.host.split(":")[0], force=True)
	frappe.connect(set_admin_as_user=False)
	frappe.set_user(_user(request.headers.get("Authorization", "")))
	body = request.get_data(as_text=True)
	sent = frappe.parse_json(body) if body and request.is_json else {**request.args, **request.form}
	if not isinstance(sent, dict):
		frappe.throw(frappe._("The request's arguments must be an object"))
	frappe.local.form_dict = frappe._dict(sent)
	_ask_hooks(request.headers.get("Authorization", ""))
	is_private_file = request.path.startswith("/private/files/")
	response = (download_private_file if is_private_file else frappe.api.handle)(request)
	if frappe.local.flags.commit or request.method in ("POST", "PUT", "DELETE", "PATCH"):
		frappe.db.commit()
	else:
		frappe.db.rollback()
	return response


def _user(authorization: str) -> str:
	"""The owner of the API key that the request shows, or a guest if it shows nothing."""
	kind, _space, token = authorization.partition(" ")
	if kind.lower() == "bearer":
		return "Guest"  # unless a hook knows it
	if kind.lower() not in ("", "token"):
		raise frappe.NotOfferedError(f"Authorization by {kind}")
	key, _colon, secret = token.partition(":")
	user = key and frappe.db.get_value("User", {"api_key": key, "enabled": 1})
	stored = user and frappe.db.get_value("__Auth", {"name": user}, "password", order_by=None)
	if kind and not (stored and secret == stored):
		raise frappe.AuthenticationError
	return user or "Guest"


def _ask_hooks(authorization: str) -> None:
	"""Apps may know who shows what the site itself does not know."""
	for hook in frappe.get_hooks("auth_hooks"):
		frappe.get_attr(hook)()
	if authorization and frappe.session.user == "Guest":
		raise frappe.AuthenticationError


def _handle_exception(error: Exception) -> Response:
	code = error.code if isinstance(error, HTTPException) else getattr(error, "http_status_code", 500)
	# The answer reads settings, so an aborted transaction must go first; what broke is kept for people.
	with contextlib.suppress(Exception):
		frappe.db.rollback()
		if code >= 500:
			frappe.log_error(title=str(error) or type(error).__name__)
			frappe.db.commit()
	return frappe.api.report_error(code)


def serve(port: int, site: str, host: str) -> None:
	chosen = {"HTTP_X_FRAPPE_SITE_NAME": site}
	run_simple(host, port, lambda environ, start: application({**environ, **chosen}, start), threaded=True)
