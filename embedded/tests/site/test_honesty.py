"""What is missing says so by name; nothing is quietly left out."""

import pytest

REFUSED = {
	"frappe.sendmail(recipients=[])": "frappe.sendmail",
	"frappe.rename_doc('Note Item', 'a', 'b')": "frappe.rename_doc",
	"import frappe.email.queue": "frappe.email",
	"from frappe.utils.pdf import get_pdf": "frappe.utils.pdf",
	"from frappe.desk.query_report import run": "frappe.desk.query_report",
	"from frappe.installer import remove_app; remove_app('notes_app', dry_run=True)": "Removing an app",
	"from frappe.modules.patch_handler import run_single; run_single('execute:print(1)')": "execute:print(1)",
	"from frappe.desk.search import search_link; search_link('Note Item', '', 'a.b')": "search_widget",
	"from frappe.utils.background_jobs import get_redis_conn; get_redis_conn('user')": "RQ authentication",
	"from frappe.utils.response import build_response; build_response('pdf')": "pdf",
}


@pytest.mark.parametrize("call", REFUSED)
def test_a_call_that_is_not_offered_names_itself(bench, call):
	message = bench.python(f"try:\n\t{call}\nexcept frappe.NotOfferedError as error:\n\tanswer = str(error)")
	assert message, "nothing was raised"
	assert REFUSED[call] in message
	assert "not offered by the embedded site" in message


@pytest.mark.parametrize(
	"call",
	[
		"from frappe.installer import install_app; install_app('notes_app', unknown=1)",
		"from frappe.utils.background_jobs import start_worker; start_worker(unknown=1)",
		"frappe.get_list('Note Item', unknown=1)",
	],
)
def test_unknown_arguments_are_an_error(bench, call):
	assert bench.python(f"try:\n\t{call}\nexcept TypeError as error:\n\tanswer = str(error)")


def test_the_readme_lists_what_is_not_offered(bench):
	from homes.embedded import ROOT

	assert "## Not offered" in (ROOT / "embedded" / "README.md").read_text()
