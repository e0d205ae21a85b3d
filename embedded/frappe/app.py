"""The WSGI application: one request, one site context, one transaction."""

import contextlib
from collections.abc import Callable, Iterable

import frappe
import frappe.api
from frappe.utils import get_site_name
from frappe.utils.password import get_decrypted_password
from frappe.utils.response import report_error
from werkzeug.exceptions import HTTPException
from werkzeug.serving import run_simple
from werkzeug.wrappers import Request, Response


def application(environ: dict, start_response: Callable) -> Iterable[bytes]:
	try:
		response = _answer(Request(environ))
	except Exception as error:
		response = handle_exception(error)
	finally:
		frappe.destroy()
	return response(environ, start_response)


def _answer(request: Request) -> Response:
	frappe.local.request = request
	frappe.init(request.headers.get("X-Frappe-Site-Name") or get_site_name(request.host), force=True)
	frappe.connect(set_admin_as_user=False)
	validate_auth()
	body = request.get_data(as_text=True)
	sent = frappe.parse_json(body) if body and request.is_json else {**request.args, **request.form}
	if not isinstance(sent, dict):
		frappe.throw(frappe._("The request's arguments must be an object"))
	frappe.local.form_dict = frappe._dict(sent)
	response = frappe.api.handle(request)
	if frappe.local.flags.commit or request.method in ("POST", "PUT", "DELETE", "PATCH"):
		frappe.db.commit()
	else:
		frappe.db.rollback()
	return response


def validate_auth() -> None:
	"""The request's user is the owner of the API key that it shows, or a guest if it shows nothing."""
	frappe.set_user("Guest")
	kind, _space, token = frappe.get_request_header("Authorization", "").partition(" ")
	if kind.lower() not in ("", "token"):
		raise frappe.NotOfferedError(f"Authorization by {kind}")
	if kind:
		key, _colon, secret = token.partition(":")
		user = key and frappe.db.get_value("User", {"api_key": key, "enabled": 1})
		if not user or secret != get_decrypted_password("User", user, "api_secret", raise_exception=False):
			raise frappe.AuthenticationError
		frappe.set_user(user)


def handle_exception(error: Exception) -> Response:
	code = error.code if isinstance(error, HTTPException) else getattr(error, "http_status_code", 500)
	# The answer reads settings, so an aborted transaction must go first; what broke is kept for people.
	with contextlib.suppress(Exception):
		frappe.db.rollback()
		if code >= 500:
			frappe.log_error(title=str(error)[:140] or type(error).__name__)
			frappe.db.commit()
	return report_error(code)


def serve(port: int, site: str, host: str) -> None:
	chosen = {"HTTP_X_FRAPPE_SITE_NAME": site}
	run_simple(host, port, lambda environ, start: application({**environ, **chosen}, start), threaded=True)
