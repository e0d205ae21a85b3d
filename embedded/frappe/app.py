"""The WSGI application: one request, one site context, one transaction."""

import contextlib
import os
from collections.abc import Callable, Iterable

import frappe
import frappe.api
import frappe.handler
from frappe import _
from frappe.auth import UNSAFE_HTTP_METHODS, HTTPRequest, validate_auth
from frappe.utils import CallbackManager, cint, get_site_name
from frappe.utils.response import build_response, report_error
from frappe.website.serve import get_response, message_page
from werkzeug.exceptions import HTTPException, NotFound
from werkzeug.middleware.shared_data import SharedDataMiddleware
from werkzeug.serving import run_simple
from werkzeug.wrappers import Request, Response
from werkzeug.wsgi import ClosingIterator

MAX_BODY = 25 * 1024 * 1024

_site: str | None = None
_sites_path = os.environ.get("SITES_PATH", ".")


def application(environ: dict, start_response: Callable) -> Iterable[bytes]:
	request = Request(environ)
	answered = CallbackManager()
	response = _answer(request, answered)
	return ClosingIterator(response(environ, start_response), [answered.run, frappe.destroy])


def _answer(request: Request, answered: CallbackManager) -> Response | HTTPException:
	committed = False
	response: Response | HTTPException
	try:
		_begin(request, answered)
		if request.method != "OPTIONS":
			validate_auth()
		response = _dispatch(request)
		committed = _end_transaction(request)
	except HTTPException as error:
		response = error
	except Exception as error:
		response = handle_exception(error)
	if not committed and getattr(frappe.local, "db", None):
		frappe.db.rollback()
	_after_request(request, response)
	return response


def _begin(request: Request, answered: CallbackManager) -> None:
	site = _site or request.headers.get("X-Frappe-Site-Name") or get_site_name(request.host)
	frappe.local.request = request
	try:
		frappe.init(site, sites_path=_sites_path, force=True)
	except frappe.IncorrectSitePath:
		raise NotFound from None
	frappe.local.request = request
	request.after_response = answered
	frappe.local.is_ajax = request.headers.get("X-Requested-With") == "XMLHttpRequest"
	frappe.connect(set_admin_as_user=False)
	if frappe.local.conf.maintenance_mode:
		raise frappe.SessionStopped
	request.max_content_length = cint(frappe.local.conf.max_file_size) or MAX_BODY
	frappe.local.form_dict = _arguments(request)
	if request.method != "OPTIONS":
		frappe.local.http_request = HTTPRequest()
	for hook in frappe.get_hooks("before_request"):
		frappe.call(hook)


def _arguments(request: Request) -> frappe._dict:
	body = request.get_data(as_text=True)
	sent = frappe.parse_json(body) if body and request.is_json else {**request.args, **request.form}
	if isinstance(sent, list):
		return frappe._dict(data=sent)
	if not isinstance(sent, dict):
		frappe.throw(_("The request's arguments must be an object or a list"))
	return frappe._dict({key: value for key, value in sent.items() if key != "_"})


def _dispatch(request: Request) -> Response:
	if request.method == "OPTIONS":
		return Response()
	if frappe.form_dict.cmd:
		answer = frappe.handler.handle()
		return answer if isinstance(answer, Response) else build_response("json")
	if request.path.startswith("/api/"):
		return frappe.api.handle(request)
	if request.method in ("GET", "HEAD", "POST"):
		return get_response()
	raise NotFound


def _end_transaction(request: Request) -> bool:
	if frappe.local.flags.commit or request.method in UNSAFE_HTTP_METHODS:
		frappe.db.commit()
		return True
	return False


def handle_exception(error: Exception) -> Response:
	"""Turn an exception into the answer its class asks for; call it while the exception is handled."""
	code = getattr(error, "http_status_code", 500)
	if getattr(frappe.local, "db", None):
		_after_failure(error, code)
	frappe.session.user = frappe.session.user or "Guest"
	if isinstance(error, frappe.AuthenticationError) and hasattr(frappe.local, "cookie_manager"):
		frappe.local.cookie_manager.forget_session()
	request = frappe.local.request
	accepts = request.headers.get("Accept", "")
	wants_json = "application/json" in accepts or (accepts and frappe.local.is_ajax)
	if wants_json or (request.path.startswith("/api/") and not accepts.startswith("text")):
		return report_error(code)
	return message_page(code)


def _after_failure(error: Exception, code: int) -> None:
	"""The answer reads settings, so an aborted transaction must go first; what broke is kept for people."""
	with contextlib.suppress(Exception):
		frappe.db.rollback()
		if code >= 500:
			frappe.log_error(title=str(error)[:140] or type(error).__name__)
			frappe.db.commit()


def _after_request(request: Request, response: Response | HTTPException) -> None:
	try:
		if getattr(frappe.local, "db", None):
			for hook in frappe.get_hooks("after_request"):
				frappe.call(hook, response=response, request=request)
	except Exception:
		frappe.logger().error("An after_request hook failed", exc_info=True)
	if isinstance(response, Response) and hasattr(frappe.local, "cookie_manager"):
		frappe.local.cookie_manager.flush_cookies(response)


def serve(port: int = 8000, site: str | None = None, sites_path: str = ".", host: str = "127.0.0.1") -> None:
	global _site, _sites_path
	_site, _sites_path = site, sites_path
	apps = frappe.get_all_apps(with_internal_apps=False, sites_path=sites_path)
	exports = {f"/assets/{app}": frappe.get_app_path(app, "public") for app in apps}
	folders = {url: path for url, path in exports.items() if os.path.isdir(path)}
	run_simple(host, int(port), SharedDataMiddleware(application, folders), threaded=True)
