import click
import frappe
from frappe.commands import get_site, pass_context


@click.command("count-notes")
@pass_context
def count_notes(context):
	frappe.init(get_site(context))
	frappe.connect()
	click.echo(frappe.db.count("Note Item"))
	frappe.destroy()


commands = [count_notes]
