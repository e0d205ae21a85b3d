"""Frappe's Desk, served by the site under test and looked at in a real browser."""

import contextvars
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import frappe
from playwright.sync_api import Browser, Page, Playwright, TimeoutError, sync_playwright
from werkzeug.middleware.shared_data import SharedDataMiddleware
from werkzeug.serving import WSGIRequestHandler, make_server

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
	"--no-sandbox",
	"--disable-gpu",
	"--disable-quic",
	"--no-first-run",
	"--disable-background-networking",
	"--disable-component-update",
	"--disable-sync",
)
NO_BROWSER = (
	"The tests of Desk need a browser. Install Debian's package chromium, or run in the bench: "
	"env/bin/python -m playwright install chromium"
)
NO_ASSETS = "This bench has no assets, so its Desk cannot be opened. Run: bench build"
# the realtime server does not run here, and Desk would ask for it again and again
REALTIME = "**/socket.io/**"
QUIET = "() => window.frappe?.boot && frappe.request?.ajax_count === 0 && !$('#freeze').is(':visible')"
# milliseconds: a machine that does much else is slow
PATIENCE = 40_000


@contextmanager
def served() -> Iterator[str]:
	"""The address of the site under test, on a port of its own, as long as the block lasts."""
	if not os.path.exists("assets/assets.json"):
		raise RuntimeError(NO_ASSETS)
	complete_setup()
	server = make_server("127.0.0.1", 0, _application(), threaded=True, request_handler=_Silent)
	threading.Thread(target=server.serve_forever, daemon=True).start()
	try:
		yield f"http://127.0.0.1:{server.server_port}"
	finally:
		server.shutdown()
		server.server_close()


@contextmanager
def started_browser() -> Iterator[Browser]:
	with sync_playwright() as playwright:
		browser = playwright.chromium.launch(executable_path=_executable(playwright), args=OPTIONS)
		yield browser
		browser.close()


def complete_setup() -> None:
	"""A new site sends everybody to the setup wizard."""
	frappe.db.set_default("desktop:home_page", "workspace")
	frappe.db.set_single_value("System Settings", "setup_complete", 1)
	if frappe.db.has_column("Installed Application", "is_setup_complete"):
		frappe.db.set_value("Installed Application", {"app_name": "frappe"}, "is_setup_complete", 1)
	frappe.db.commit()
	frappe.clear_cache()


class Desk:
	"""One user's Desk. It stays the same page: opening something is a change of route, as a click is."""

	def __init__(self, browser: Browser, address: str, user: str, script: str = ""):
		self.user, self.errors = user, []
		session = {"name": "sid", "value": contextvars.Context().run(_new_session, os.environ["SITE"], user)}
		context = browser.new_context(
			extra_http_headers={"X-Frappe-Site-Name": os.environ["SITE"]},
			viewport={"width": 1400, "height": 1000},
			reduced_motion="reduce",
		)
		context.add_cookies([{**session, "url": address}])
		context.add_init_script(script)
		context.route(REALTIME, lambda route: route.abort())
		self.page: Page = context.new_page()
		self.page.set_default_timeout(PATIENCE)
		self.page.on("pageerror", lambda error: self.errors.append(str(error)))
		self.page.goto(f"{address}/app/background-job", wait_until="domcontentloaded")
		self.settle()

	def open(self, *route: str) -> None:
		self.page.evaluate("route => { frappe.set_route(route) }", list(route))
		self.settle()

	def reload(self) -> None:
		self.page.reload(wait_until="domcontentloaded")
		self.settle()

	def settle(self) -> None:
		"""Waits until nothing is asked of the server any more, and what was answered is drawn."""
		self.page.wait_for_function(QUIET)
		self.page.evaluate("() => new Promise((drawn) => setTimeout(drawn, 50))")
		self.page.wait_for_function(QUIET)

	def wait_for(self, condition: str, argument) -> None:
		"""Until it holds, or for some seconds: what is wrong then is for the test to say."""
		with suppress(TimeoutError):
			self.page.wait_for_function(condition, arg=argument, timeout=PATIENCE / 4)

	def take_errors(self) -> list[str]:
		taken, self.errors[:] = list(self.errors), []
		return taken

	def close(self) -> None:
		self.page.context.close()


def _application():
	from frappe.app import application

	return SharedDataMiddleware(application, {"/assets": os.path.abspath("assets")})


def _executable(playwright: Playwright) -> str:
	"""The system's browser, or the one that Playwright has brought."""
	installed = [*map(shutil.which, BROWSERS), playwright.chromium.executable_path]
	found = next((path for path in installed if path and os.path.exists(path)), None)
	if not found:
		raise RuntimeError(NO_BROWSER)
	return found


def _new_session(site: str, user: str) -> str:
	"""Logs a user in without a password, as `bench browse` does."""
	from frappe.auth import CookieManager, LoginManager

	frappe.init(site)
	frappe.connect()
	frappe.utils.set_request(path="/")
	frappe.local.cookie_manager = CookieManager()
	frappe.local.login_manager = LoginManager()
	frappe.local.login_manager.login_as(user)
	frappe.db.commit()
	session = frappe.session.sid
	frappe.destroy()
	return session


class _Silent(WSGIRequestHandler):
	def log(self, *_words) -> None:
		pass
