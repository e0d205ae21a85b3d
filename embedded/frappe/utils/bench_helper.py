"""`python -m frappe.utils.bench_helper frappe [--site SITE] COMMAND`, from the sites folder."""

import importlib.util

import click
import frappe


def main() -> None:
	names = [f"{app}.commands" for app in frappe.get_all_apps(sites_path=".")]
	modules = [importlib.import_module(name) for name in names if importlib.util.find_spec(name)]
	commands = [command for module in modules for command in module.commands]
	group = click.Group("frappe", commands=commands, params=[click.Option(["--site"])], callback=_choose_site)
	click.Group(commands={"frappe": group})(prog_name="bench")


@click.pass_context
def _choose_site(ctx: click.Context, site: str | None) -> None:
	site = site or frappe.get_common_site_config(".").default_site
	ctx.obj = {"sites": [site] if site else []}


if __name__ == "__main__":
	main()
