"""What is missing says so by name; nothing is quietly left out."""

import pytest

REFUSED = {
	"frappe.sendmail(recipients=[])": "frappe.sendmail",
	"import frappe.rate_limiter": "frappe.rate_limiter",
	"from frappe.utils.pdf import get_pdf": "frappe.utils.pdf",
	"from frappe.installer import remove_app; remove_app('notes_app')": "Removing an app",
	"from frappe.desk.search import search_link; search_link('Note Item', '', 'a.b')": "search_link",
	"frappe.cache.hget('a', 'b')": "frappe.cache.hget",
	"frappe.enqueue('notes_app.api.add', now=True)": "frappe.enqueue with now",
	"frappe.get_meta('Role').autoname = 'naming_series:'; frappe.new_doc('Role').insert()": "naming_series",
}
UNKNOWN = [
	"from frappe.installer import install_app; install_app('notes_app', unknown=1)",
	"from frappe.utils.background_jobs import start_worker; start_worker(unknown=1)",
	"frappe.get_list('Note Item', unknown=1)",
]


@pytest.mark.parametrize("call", REFUSED)
def test_a_call_that_is_not_offered_names_itself(bench, call):
	message = bench.python(f"try:\n\t{call}\nexcept frappe.NotOfferedError as error:\n\tanswer = str(error)")
	assert message, "nothing was raised"
	assert REFUSED[call] in message
	assert "not offered by the embedded site (see embedded/README.md)" in message


@pytest.mark.parametrize("call", UNKNOWN)
def test_unknown_arguments_are_an_error(bench, call):
	assert bench.python(f"try:\n\t{call}\nexcept TypeError as error:\n\tanswer = str(error)")


def test_it_stays_small():
	"""It offers what the app uses and no more; past this it would be a framework to maintain."""
	from homes.embedded import ROOT

	sources = (ROOT / "embedded" / "frappe").rglob("*.py")
	assert sum(len(path.read_text().splitlines()) for path in sources) < 3000
