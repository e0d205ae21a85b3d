"""The commands: sites, apps, workers, scheduler, web server."""

import ast
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import click
import frappe
from frappe.commands import get_site, pass_context
from frappe.utils.response import json_handler


@contextlib.contextmanager
def opened(context: frappe._dict) -> Iterator[str]:
	site = get_site(context)
	frappe.init(site)
	frappe.connect()
	try:
		yield site
		frappe.db.commit()
	finally:
		frappe.destroy()


@click.command("new-site")
@click.argument("site")
@click.option("--db-name")
@click.option("--db-password")
@click.option("--db-root-username", default="postgres")
@click.option("--db-root-password", default="")
@click.option("--admin-password")
@click.option("--install-app", "apps", multiple=True)
@click.option("--force", is_flag=True, help="Replace a site and a database of that name")
def new_site(site: str, apps: tuple[str, ...], **options: Any) -> None:
	from frappe.installer import _new_site, install_app

	_new_site(options.pop("db_name"), site, **options)
	for app in apps:
		install_app(app)
	frappe.db.commit()
	frappe.destroy()


@click.command("drop-site")
@click.argument("site")
@click.option("--db-root-username", default="postgres")
@click.option("--db-root-password", default="")
def drop_site(site: str, db_root_username: str, db_root_password: str) -> None:
	from frappe import installer

	installer.drop_site(site, db_root_username, db_root_password)


@click.command("install-app")
@click.argument("apps", nargs=-1, required=True)
@click.option("--force", is_flag=True)
@pass_context
def install_app(context: frappe._dict, apps: tuple[str, ...], force: bool) -> None:
	from frappe import installer

	with opened(context):
		for app in apps:
			installer.install_app(app, force=force)


@click.command("uninstall-app")
@click.argument("app")
@click.option("--yes", "-y", is_flag=True, help="Do not ask")
@click.option("--no-backup", is_flag=True, help="Needed: backups are not offered here")
@click.option("--force", is_flag=True)
@pass_context
def uninstall_app(context: frappe._dict, app: str, yes: bool, no_backup: bool, force: bool) -> None:
	from frappe.installer import remove_app

	if not yes:
		click.confirm(f"All DocTypes and data of {app} will be deleted. Go on?", abort=True)
	with opened(context):
		remove_app(app, yes=True, no_backup=no_backup, force=force)


@click.command("list-apps")
@pass_context
def list_apps(context: frappe._dict) -> None:
	with opened(context):
		click.echo("\n".join(frappe.get_installed_apps()))


@click.command("migrate")
@click.option("--skip-failing", is_flag=True, help="Go on after a patch that fails")
@pass_context
def migrate(context: frappe._dict, skip_failing: bool) -> None:
	from frappe.migrate import SiteMigration

	SiteMigration(skip_failing=skip_failing).run(get_site(context))


@click.command("execute")
@click.argument("method")
@click.option("--args", "arguments", default="()", help="A Python tuple or list")
@click.option("--kwargs", default="{}", help="A Python dictionary")
@pass_context
def execute(context: frappe._dict, method: str, arguments: str, kwargs: str) -> None:
	"""Call a function and print what it returns as JSON."""
	with opened(context):
		answer = frappe.get_attr(method)(*ast.literal_eval(arguments), **ast.literal_eval(kwargs))
	if answer:
		click.echo(json.dumps(answer, default=json_handler))


@click.command("set-config")
@click.argument("key")
@click.argument("value")
@click.option("--global", "-g", "is_global", is_flag=True, help="For all sites")
@click.option("--parse", "-p", is_flag=True, help="Read the value as Python")
@pass_context
def set_config(context: frappe._dict, key: str, value: Any, is_global: bool, parse: bool) -> None:
	from frappe.installer import update_site_config

	path = None if is_global else f"{get_site(context)}/site_config.json"
	value = ast.literal_eval(value) if parse else value
	update_site_config(key, value, validate=False, site_config_path=path or "common_site_config.json")


@click.command("enable-scheduler")
@pass_context
def enable_scheduler(context: frappe._dict) -> None:
	from frappe.utils import scheduler

	with opened(context):
		scheduler.enable_scheduler()


@click.command("disable-scheduler")
@pass_context
def disable_scheduler(context: frappe._dict) -> None:
	from frappe.utils import scheduler

	with opened(context):
		scheduler.disable_scheduler()


@click.command("schedule")
def schedule() -> None:
	from frappe.utils.scheduler import start_scheduler

	start_scheduler()


@click.command("worker")
@click.option("--queue", help="Queues in order of preference, separated by commas")
@click.option("--quiet", is_flag=True)
@click.option("--burst", is_flag=True, help="Leave when nothing waits")
@click.option("--strategy", type=click.Choice(["round_robin", "random"]))
def worker(queue: str | None, quiet: bool, burst: bool, strategy: str | None) -> None:
	from frappe.utils.background_jobs import start_worker
	from rq.worker import DequeueStrategy

	start_worker(queue, quiet, burst, DequeueStrategy(strategy) if strategy else None)


@click.command("serve")
@click.option("--port", default=8000)
@click.option("--host", default="127.0.0.1")
@click.option("--noreload", is_flag=True, help="Accepted because there is no reloader here")
@pass_context
def serve(context: frappe._dict, port: int, host: str, noreload: bool) -> None:
	import frappe.app

	frappe.app.serve(port=port, site=get_site(context, raise_err=False), host=host)


commands = [new_site, drop_site, install_app, uninstall_app, list_apps, migrate, execute, set_config]
commands += [enable_scheduler, disable_scheduler, schedule, worker, serve]
