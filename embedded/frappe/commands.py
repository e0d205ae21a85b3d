"""The commands: sites, apps, workers, scheduler, web server; and what apps need to bring their own."""

import json
from ast import literal_eval
from collections.abc import Callable
from functools import wraps

import click
import frappe.app
from click import argument, confirmation_option, option
from frappe import installer
from frappe.migrate import SiteMigration
from frappe.utils.background_jobs import start_worker
from frappe.utils.scheduler import start_scheduler


def pass_context(f: Callable) -> Callable:
	@wraps(f)
	def run(ctx: click.Context, *args, **kwargs):
		try:
			return f(frappe._dict(ctx.obj), *args, **kwargs)
		except (frappe.SiteNotSpecifiedError, frappe.IncorrectSitePath) as error:
			raise click.ClickException(str(error)) from None

	return click.pass_context(run)


def get_site(context: frappe._dict) -> str:
	if not context.sites:
		raise frappe.SiteNotSpecifiedError("Name the site with --site")
	return context.sites[0]


def _command(name: str, function: Callable, *parameters: Callable) -> click.Command:
	for parameter in reversed(parameters):
		function = parameter(function)
	return click.command(name)(function)


def _named(function: Callable) -> Callable:
	"""Gets the name of the site that was chosen."""
	return pass_context(lambda context, **options: function(site=get_site(context), **options))


def _connected(function: Callable) -> Callable:
	def run(site: str, **options) -> None:
		frappe.connect(site)
		try:
			answer = function(**options)
			frappe.db.rollback() if options.get("dry_run") else frappe.db.commit()
		finally:
			frappe.destroy()
		if answer:  # printed as late as Frappe does
			click.echo(json.dumps(answer, default=frappe.json_handler))

	return _named(run)


def execute(method: str, arguments: str, kwargs: str) -> object:
	return frappe.get_attr(method)(*literal_eval(arguments), **literal_eval(kwargs))


def set_config(site: str, key: str, value: str, for_all: bool, parse: bool) -> None:
	path = "common_site_config.json" if for_all else f"{site}/site_config.json"
	installer.write_json(path, frappe.get_file_json(path) | {key: literal_eval(value) if parse else value})


FLAG = {"is_flag": True}
ROOT = (option("--db-root-username", default="postgres"), option("--db-root-password", default=""))
# an administrator's password is taken because bench takes it: there is no login with passwords here
NEW = (option("--db-name"), option("--install-app", "apps", multiple=True))
CALL = (argument("method"), option("--args", "arguments", default="()"), option("--kwargs", default="{}"))
REMOVE = (option("--no-backup", **FLAG), option("--dry-run", **FLAG), confirmation_option(prompt="Remove?"))
SET = (argument("key"), argument("value"), option("-g", "--global", "for_all", **FLAG))
SERVE = (option("--port", default=8000), option("--host", default="127.0.0.1"))
commands = [
	_command("new-site", installer.new_site, argument("site"), *ROOT, *NEW, option("--force", **FLAG)),
	_command("install-app", _connected(installer.install_app), argument("name")),
	_command("uninstall-app", _connected(installer.remove_app), argument("app_name"), *REMOVE),
	_command("list-apps", _connected(lambda: click.echo("\n".join(frappe.get_installed_apps())))),
	_command("migrate", _named(SiteMigration().run)),
	_command("execute", _connected(execute), *CALL),
	_command("set-config", _named(set_config), *SET, option("-p", "--parse", **FLAG)),
	_command("schedule", start_scheduler),
	_command("worker", start_worker, option("--queue"), option("--quiet", **FLAG), option("--burst", **FLAG)),
	_command("serve", _named(frappe.app.serve), *SERVE),
]
