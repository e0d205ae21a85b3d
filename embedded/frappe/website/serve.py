"""Pages from `<app>/www`: HTML beside an optional Python module with `get_context`."""

import html
import http
import importlib
from pathlib import Path

import frappe
from werkzeug.exceptions import NotFound
from werkzeug.wrappers import Response


def get_response(path: str | None = None, http_status_code: int = 200) -> Response:
	route = (path or frappe.local.request.path).strip("/")
	app, file = _find(route)
	context = frappe._dict(frappe.local.form_dict, path=route)
	module = file.with_suffix(".py")
	if module.exists():
		name = f"{app}.www.{'.'.join(module.relative_to(_www(app)).with_suffix('').parts)}"
		if get_context := getattr(importlib.import_module(name), "get_context", None):
			context = get_context(context) or context
	page = _render(app, file, context)
	if token := frappe.local.session.data.csrf_token:
		page = page.replace("<!-- csrf_token -->", f'<script>frappe.csrf_token = "{token}";</script>')
	return Response(page, status=http_status_code, mimetype="text/html")


def message_page(status: int) -> Response:
	title = http.HTTPStatus(status).phrase
	text = "".join(f"<p>{html.escape(str(entry['message']))}</p>" for entry in frappe.local.message_log)
	page = f"<!doctype html><title>{title}</title><h1>{title}</h1>{text}"
	return Response(page, status, mimetype="text/html")


def _find(route: str) -> tuple[str, Path]:
	if ".." in route.split("/"):
		raise NotFound
	for app in reversed(frappe.get_installed_apps()):
		for candidate in (f"{route}.html", f"{route}/index.html"):
			if (file := _www(app) / candidate).is_file():
				return app, file
	raise NotFound


def _www(app: str) -> Path:
	return Path(frappe.get_app_path(app, "www"))


def _render(app: str, file: Path, context: dict) -> str:
	source = file.read_text()
	if "{{" not in source and "{%" not in source:
		return source
	try:
		import jinja2
	except ModuleNotFoundError:
		raise frappe.NotOfferedError(f"The template {file.name} without Jinja2 installed") from None
	loader = jinja2.FileSystemLoader([_www(app), frappe.get_app_path(app)])
	environment = jinja2.Environment(loader=loader, autoescape=True)
	return environment.from_string(source).render(frappe=frappe, _=frappe._, **context)
