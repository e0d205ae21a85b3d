"""Sites and apps through the command line: install, migrate, uninstall."""

import json


def test_install_runs_its_hooks_in_frappes_order(bench):
	bench.run("list-apps")
	steps = bench.steps()
	assert steps[:2] == ["before_install table=False", "after_install table=True fixtures=0"]
	assert "patch" not in steps, "patches of a fresh install count as done"


def test_fixtures_and_roles_come_with_the_install(bench):
	answer = bench.python("answer = [frappe.db.exists('Role', 'Note Reader'), frappe.db.count('Note Item')]")
	assert answer[0] == "Note Reader"
	assert answer[1] >= 1


def test_migrate_puts_fixtures_back_and_runs_new_patches_once(bench):
	bench.python("frappe.db.set_value('Note Item', 'welcome', 'body', 'edited')")
	bench.python("frappe.db.delete('Patch Log', {'patch': 'notes_app.patches.greet'})")
	before = len(bench.steps())
	bench.run("migrate")
	bench.run("migrate")
	assert bench.steps()[before:] == [
		"before_migrate",
		"patch",
		"after_migrate",
		"before_migrate",
		"after_migrate",
	]
	assert bench.python("answer = frappe.db.get_value('Note Item', 'welcome', 'body')") == "from the fixture"


def test_execute_prints_json_and_commits(bench):
	done = bench.run("execute", "notes_app.jobs.write", "--kwargs", "{'title': 'by command'}")
	assert json.loads(done.stdout.splitlines()[-1]) == "by command"
	assert bench.python("answer = frappe.db.exists('Note Item', 'by command')") == "by command"


def test_apps_bring_their_own_commands(bench):
	assert int(bench.run("count-notes").stdout) >= 1


def test_set_config_writes_for_one_site_or_for_all(bench):
	bench.run("set-config", "colour", "green")
	bench.run("set-config", "-g", "-p", "limit", "5")
	assert bench.python("answer = [frappe.conf.colour, frappe.conf.limit]") == ["green", 5]


def test_a_missing_site_is_an_error_message(bench):
	done = bench.run("--site", "nowhere.localhost", "list-apps", check=False)
	assert done.returncode != 0
	assert "nowhere.localhost" in done.stderr
	assert "Traceback" not in done.stderr


def test_uninstall_drops_tables_and_a_new_install_works(bench):
	custom = {"doctype": "DocType", "name": "Note Extra", "module": "Notes", "custom": 1}
	custom["fields"] = [{"fieldname": "text", "fieldtype": "Data", "label": "Text"}]
	bench.python(f"frappe.get_doc({custom!r}).insert()")
	before = len(bench.steps())
	bench.run("uninstall-app", "notes_app", "--yes", "--no-backup")
	tables = "answer = [frappe.db.table_exists('Note Item'), frappe.db.table_exists('Note Extra')]"
	assert bench.python(tables) == [False, False]
	assert bench.run("list-apps").stdout.split() == ["frappe"]
	assert bench.steps()[before:] == ["before_uninstall", "after_uninstall table=False"]
	bench.run("install-app", "notes_app")
	assert bench.python("answer = frappe.db.count('Note Item')") == 1
