"""Commands of the site, and what apps need to bring their own."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click
import frappe


def pass_context(f: Callable) -> Callable:
	@wraps(f)
	def command(ctx: click.Context, *args: Any, **kwargs: Any) -> Any:
		try:
			return f(frappe._dict(ctx.obj), *args, **kwargs)
		except (frappe.SiteNotSpecifiedError, frappe.IncorrectSitePath) as error:
			raise click.ClickException(str(error)) from None

	return click.pass_context(command)


def get_site(context: frappe._dict, raise_err: bool = True) -> str | None:
	if context.sites:
		return context.sites[0]
	if raise_err:
		raise frappe.SiteNotSpecifiedError
	return None


def __getattr__(name: str) -> Any:
	"""The list of commands is looked up late: site.py imports this module."""
	if name != "commands":
		raise AttributeError(name)
	from frappe.commands.site import commands

	return commands
