"""Sites and apps through the command line. The app's own suite uninstalls and installs again."""


def test_install_runs_its_hooks_in_frappes_order(bench):
	assert bench.run("list-apps").stdout.split() == ["frappe", "notes_app"]
	assert bench.steps() == ["before_install table=False", "after_install table=True notes=0"]
	assert bench.python("answer = [frappe.db.count('Patch Log'), frappe.db.count('Note Item')]") == [1, 1]
	assert bench.python("answer = frappe.db.exists('Role', 'Note Reader')") == "Note Reader"


def test_migrate_puts_fixtures_back_and_runs_new_patches_once(bench):
	bench.python("frappe.db.set_value('Note Item', 'welcome', 'body', 'edited')")
	bench.python("frappe.db.delete('Patch Log')")
	before = len(bench.steps())
	bench.run("migrate")
	bench.run("migrate")
	assert bench.steps()[before:] == ["patch", "after_migrate", "after_migrate"]
	assert bench.python("answer = frappe.db.get_value('Note Item', 'welcome', 'body')") == "from the fixture"


def test_execute_prints_json_and_commits_and_apps_bring_commands(bench):
	done = bench.run("execute", "notes_app.api.add", "--kwargs", "{'title': 'by command'}")
	assert done.stdout == '"by command"\n'
	assert bench.run("count-notes").stdout == "2\n"


def test_set_config_writes_for_one_site(bench):
	bench.run("set-config", "colour", "green")
	assert bench.python("answer = frappe.conf.colour") == "green"


def test_a_missing_site_is_an_error_message(bench):
	done = bench.run("--site", "nowhere.localhost", "list-apps", check=False)
	assert (done.returncode, done.stderr) == (1, "Error: There is no site nowhere.localhost\n")
