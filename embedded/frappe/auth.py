"""Who is asking: session cookies, API keys and passwords."""

import base64
import binascii
import datetime
from urllib.parse import quote, unquote

import frappe
from frappe import _
from frappe.sessions import Session, delete_session
from frappe.utils.password import check_password, get_decrypted_password
from werkzeug.wrappers import Response

SAFE_HTTP_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
UNSAFE_HTTP_METHODS = frozenset(("POST", "PUT", "DELETE", "PATCH"))
SESSION_COOKIES = ("sid", "user_id", "full_name", "system_user")


class HTTPRequest:
	"""Sets the request's address, session and user, and refuses forged posts."""

	def __init__(self) -> None:
		forwarded = frappe.get_request_header("X-Forwarded-For")
		address = forwarded.split(",")[0].strip() if forwarded else frappe.local.request.remote_addr
		frappe.local.request_ip = address or "127.0.0.1"
		frappe.local.cookie_manager = CookieManager()
		frappe.local.login_manager = LoginManager()
		self.validate_csrf_token()

	def validate_csrf_token(self) -> None:
		expected = frappe.local.session.data.csrf_token
		if not expected or frappe.conf.ignore_csrf or frappe.local.request.method not in UNSAFE_HTTP_METHODS:
			return
		in_form = frappe.local.form_dict.pop("csrf_token", None)
		if (frappe.get_request_header("X-Frappe-CSRF-Token") or in_form) != expected:
			frappe.local.flags.disable_traceback = True
			frappe.throw(_("The request does not come from a page of this site"), frappe.CSRFTokenError)


class LoginManager:
	user: str

	def __init__(self) -> None:
		request, sent = frappe.local.request, frappe.local.form_dict
		if sent.cmd == "login" or request.path == "/api/method/login":
			self.login()
		else:
			sid = request.cookies.get("sid")
			self._use(Session.resume(unquote(sid) if sid else None))

	def login(self) -> None:
		self.authenticate()
		frappe.local.form_dict.pop("pwd", None)
		self._run_hooks("on_login")
		self._use(Session.start(self.user))
		self._greet()
		self._run_hooks("on_session_creation")

	def authenticate(self, user: str | None = None, pwd: str | None = None) -> None:
		user, pwd = user or frappe.local.form_dict.usr, pwd or frappe.local.form_dict.pwd
		if not (user and pwd):
			self.fail(_("User and password are needed"))
		try:
			self.user = check_password(user, pwd)
		except frappe.AuthenticationError:
			self.fail(_("User or password is wrong"))
		if self.user != "Administrator" and not frappe.db.get_value("User", self.user, "enabled"):
			self.fail(_("This user is disabled"))

	def fail(self, message: str) -> None:
		frappe.local.response["message"] = message
		raise frappe.AuthenticationError

	def logout(self) -> None:
		delete_session(frappe.local.session.sid)
		frappe.local.cookie_manager.forget_session()
		self._use(Session("Guest"))

	def _use(self, session: Session) -> None:
		sent = frappe.local.form_dict
		self.user = session.user
		frappe.set_user(session.user)
		frappe.local.form_dict = sent
		frappe.local.session_obj, frappe.local.session = session, session.data

	def _greet(self) -> None:
		who = frappe.db.get_value("User", self.user, ["full_name", "user_type"], as_dict=True)
		system_user = who.user_type != "Website User"
		frappe.local.response["message"] = "Logged In" if system_user else "No App"
		frappe.local.response["home_page"] = "/app" if system_user else "/me"
		frappe.local.response["full_name"] = who.full_name
		cookies = {"sid": frappe.session.sid, "user_id": self.user, "full_name": who.full_name}
		for key, value in (cookies | {"system_user": "yes" if system_user else "no"}).items():
			frappe.local.cookie_manager.set_cookie(key, value)

	def _run_hooks(self, event: str) -> None:
		for method in frappe.get_hooks(event):
			frappe.call(frappe.get_attr(method), login_manager=self)


class CookieManager:
	def __init__(self) -> None:
		self.cookies: dict[str, str] = {}

	def set_cookie(self, key: str, value: str | None) -> None:
		self.cookies[key] = value or ""

	def forget_session(self) -> None:
		self.cookies |= dict.fromkeys(SESSION_COOKIES, "")

	def flush_cookies(self, response: Response) -> None:
		for key, value in self.cookies.items():
			lifetime = datetime.timedelta(days=3) if value else datetime.timedelta(0)
			secret = key == "sid"
			response.set_cookie(key, quote(value), max_age=lifetime, httponly=secret, samesite="Lax")


def validate_auth() -> None:
	"""An Authorization header that names nobody ends the request; without one the session's user stays."""
	kind, _space, token = (frappe.get_request_header("Authorization") or "").partition(" ")
	if token and " " not in token:
		_use_api_key(kind.lower(), token)
	for hook in frappe.get_hooks("auth_hooks"):
		frappe.get_attr(hook)()
	if token and frappe.session.user in ("", "Guest"):
		raise frappe.AuthenticationError


def _use_api_key(kind: str, token: str) -> None:
	if kind == "basic":
		try:
			token = base64.b64decode(token).decode()
		except (binascii.Error, UnicodeDecodeError):
			frappe.throw(_("The token is not valid base64"), frappe.InvalidAuthorizationToken)
	elif kind != "token":
		return
	key, _colon, secret = token.partition(":")
	user = frappe.db.get_value("User", {"api_key": key, "enabled": 1}) if key and secret else None
	if not user or secret != get_decrypted_password("User", user, "api_secret", raise_exception=False):
		raise frappe.AuthenticationError
	if frappe.local.login_manager.user in ("", "Guest"):
		sent = frappe.local.form_dict
		frappe.set_user(user)
		frappe.local.form_dict = sent


@frappe.whitelist()
def get_logged_user() -> str:
	return frappe.session.user
