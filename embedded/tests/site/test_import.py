"""CSV files through Frappe's importer."""

import json

CODE = """
from frappe.core.doctype.data_import.importer import Importer
log = Importer("Note Item", file_path={path!r}, import_type={kind!r}).import_data()
answer = [log and [row.success for row in log], bool(frappe.flags.in_import)]
"""


def run_import(bench, path, kind: str, text: str):
	path.write_text(text)
	return bench.python(CODE.format(path=str(path), kind=kind))


def test_each_row_stands_or_falls_alone(bench, tmp_path):
	rows = "Title,Body,Color\none,good,Red\ntwo,bad,\nthree,good,\n"
	assert run_import(bench, tmp_path / "new.csv", "Insert New Records", rows) == [[1, 0, 1], False]
	names = bench.python(
		"answer = frappe.get_all('Note Item', {'name': ['in', ['one', 'two', 'three']]}, pluck='name')"
	)
	assert sorted(names) == ["one", "three"]


def test_updates_by_id(bench, tmp_path):
	rows = "ID,Color\none,Blue\nnobody,Red\n"
	assert run_import(bench, tmp_path / "old.csv", "Update Existing Records", rows) == [[1, 0], False]
	assert bench.python("answer = frappe.db.get_value('Note Item', 'one', 'color')") == "Blue"


def test_a_faulty_file_imports_nothing(bench, tmp_path):
	rows = "Title,Color\nfour,Green\nfive,Red\n"
	assert run_import(bench, tmp_path / "bad.csv", "Insert New Records", rows) == [None, True]
	assert bench.python("answer = frappe.db.exists('Note Item', 'five')") is None


def test_other_files_are_not_offered(bench):
	code = CODE.format(path="x.xlsx", kind="Insert New Records")
	guarded = "try:\n" + "".join(f"\t{line}\n" for line in code.strip().splitlines())
	message = bench.python(guarded + "except frappe.NotOfferedError as e:\n\tanswer = str(e)")
	assert "not offered" in json.dumps(message)
