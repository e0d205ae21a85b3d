"""`python -m frappe.utils.bench_helper frappe [--site SITE] COMMAND`, from the sites folder."""

import importlib
import os
import traceback
from typing import Any

import click
import frappe


def main() -> None:
	group = click.Group("frappe", commands=get_commands(), params=_options(), callback=_remember)
	click.Group(commands={"frappe": group})(prog_name="bench")


def get_commands() -> dict[str, click.Command]:
	commands: dict[str, click.Command] = {}
	for app in frappe.get_all_apps(with_internal_apps=False, sites_path="."):
		commands |= get_app_commands(app)
	return commands


def get_app_commands(app: str) -> dict[str, click.Command]:
	"""A broken command module of one app must not take the others' commands away."""
	try:
		module = importlib.import_module(f"{app}.commands")
	except ModuleNotFoundError as error:
		if error.name != f"{app}.commands":
			traceback.print_exc()
		return {}
	except Exception:
		traceback.print_exc()
		return {}
	return {command.name: command for command in getattr(module, "commands", [])}


def _options() -> list[click.Parameter]:
	flags = ("--profile", "--verbose", "--force")
	return [click.Option(["--site"]), *(click.Option([flag], is_flag=True) for flag in flags)]


@click.pass_context
def _remember(ctx: click.Context, site: str | None, **flags: Any) -> None:
	if flags["profile"]:
		raise frappe.NotOfferedError("--profile")
	ctx.obj = {"sites": _sites(site), **flags}


def _sites(site: str | None) -> list[str]:
	if site == "all":
		frappe.init("")
		found = frappe.utils.get_sites()
		frappe.destroy()
		return found
	chosen = site or os.environ.get("FRAPPE_SITE") or _default_site()
	return [chosen] if chosen else []


def _default_site() -> str | None:
	frappe.init("")
	default = frappe.local.conf.default_site
	frappe.destroy()
	return default


if __name__ == "__main__":
	main()
