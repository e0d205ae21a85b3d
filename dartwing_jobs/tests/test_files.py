"""Inputs of jobs do not change under them; outputs of jobs are for those who may read the job."""

import contextvars
import hashlib
import os
from datetime import timedelta
from urllib.parse import quote

import frappe
import pytest
from frappe.utils import get_url

from dartwing_jobs import clock, submit, submit_many
from dartwing_jobs.engine import database, drain, retention, states
from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import expel, make_job_type, make_queue, make_user, new_job, permit, plant

FILING = "dartwing_jobs.tests.filing"
PEOPLE = ["manager", "admin_a", "user_a", "colleague_a", "admin_b", "user_b", "stranger"]
READERS = {"manager", "admin_a", "user_a"}


@pytest.fixture
def queue():
	return make_queue()


@pytest.fixture(scope="module")
def browsers(world):
	return {person: Browser(getattr(world, person)) for person in PEOPLE}


def content() -> str:
	"""Frappe keeps files of the same content once."""
	return f"a,b\n1,{frappe.generate_hash()}\n"


def make_file(text: str, owner: str | None = None, **fields):
	frappe.set_user(owner or "Administrator")
	name = f"in-{frappe.generate_hash(length=8)}.csv"
	file = frappe.get_doc({"doctype": "File", "file_name": name, "content": text, "is_private": 1, **fields})
	file.insert(ignore_permissions=True)
	frappe.set_user("Administrator")
	return file


def make_type(handler: str, category: str, **fields) -> str:
	return make_job_type(handler_method=f"{FILING}.{handler}", category=category, **fields).name


def finish(queue: str, job_name: str):
	frappe.db.commit()
	drain.drain([queue])
	return frappe.get_doc("Background Job", job_name)


def run_export(world, queue: str, owner: str, category: str = "Import/Export", **parameters):
	parameters = {"content": content(), **parameters}
	job_type = make_type("export", category)
	return finish(queue, submit(job_type, parameters, world.a, job_queue=queue, owner_user=owner).name)


def files_of(job_name: str) -> list:
	attached = {"attached_to_doctype": "Background Job", "attached_to_name": job_name}
	return [frappe.get_doc("File", name) for name in frappe.get_all("File", filters=attached, pluck="name")]


# outputs


@pytest.mark.parametrize("category", ["Import/Export", "Planning"])
def test_an_output_is_a_private_file_of_the_job(world, queue, category):
	job = run_export(world, queue, world.user_a, category, content="Ünï,1\n" + content())
	assert (job.status, job.error_message) == (states.COMPLETED, None)
	(file,) = files_of(job.name)
	assert job.output_reference == file.file_url
	assert file.file_url.startswith("/private/files/export-")
	assert file.is_private
	assert file.get_content().startswith("Ünï,1\n")


def test_the_output_of_a_failed_attempt_is_not_kept(world, queue):
	job = run_export(world, queue, world.user_a, fail=1)
	assert (job.status, job.output_reference, files_of(job.name)) == (states.DEAD_LETTER, None, [])


def test_no_file_name_leads_elsewhere(world, queue):
	job = run_export(world, queue, world.user_a, file_name="../../../" + "x" * 200 + ".csv")
	assert job.status == states.COMPLETED
	(file,) = files_of(job.name)
	folder = os.path.realpath(os.path.join(frappe.local.site_path, "private", "files"))
	assert os.path.realpath(os.path.dirname(file.get_full_path())) == folder


@pytest.fixture(scope="module")
def exported(world):
	return run_export(world, make_queue(), world.user_a)


@pytest.mark.parametrize("person", PEOPLE)
def test_an_output_is_open_to_those_who_may_read_the_job(browsers, exported, person):
	may = person in READERS
	browser, (file,) = browsers[person], files_of(exported.name)
	assert (browser.get(f"/api/resource/Background Job/{exported.name}").status_code == 200) == may
	answer = browser.get(quote(file.file_url))
	assert (answer.status_code == 200) == may
	assert (file.get_content() == answer.get_data(as_text=True)) == may
	assert (browser.get(f"/api/resource/File/{file.name}").status_code == 200) == may
	if not may:
		listed = browser.get("/api/resource/File", filters=[["name", "=", file.name]])
		assert file.name not in listed.get_data(as_text=True)


def test_a_guest_gets_nothing(exported):
	headers = {"X-Frappe-Site-Name": frappe.local.site}
	request = ("GET", quote(exported.output_reference), headers, {})
	assert contextvars.Context().run(Browser._request, *request).status_code == 403


def test_who_has_left_the_organization_opens_nothing_any_more(world, queue):
	leaver = make_user("leaver", ["Dartwing User"], [world.a])
	browser = Browser(leaver)
	job = run_export(world, queue, leaver)
	(file,) = files_of(job.name)
	assert browser.get(quote(file.file_url)).status_code == 200
	expel(leaver, world.a)
	frappe.db.commit()
	assert browser.get(quote(file.file_url)).status_code == 403
	assert browser.get(f"/api/resource/File/{file.name}").status_code >= 400
	listed = browser.get("/api/resource/File", filters=[["name", "=", file.name]])
	assert file.name not in listed.get_data(as_text=True)
	# nor by making a file of one's own from the address
	for address in spellings_of(file.file_url):
		copy = {"file_name": "mine.csv", "file_url": address, "is_private": 1}
		answer = browser.post("/api/resource/File", **copy)
		# what Frappe takes for another server's address may be noted: it opens nothing here
		is_elsewhere = answer.status_code == 200 and answer.json["data"]["file_url"].startswith("http")
		assert answer.status_code >= 400 or is_elsewhere, address
	own = browser.post("/api/resource/File", file_name="own.csv", content=content(), is_private=1)
	assert own.status_code == 200
	name = own.json["data"]["name"]
	for address in spellings_of(file.file_url):
		browser.put(f"/api/resource/File/{name}", file_url=address)
		frappe.db.rollback()
		stored = frappe.db.get_value("File", name, "file_url")
		assert stored.startswith("http") or stored not in spellings_of(file.file_url)
	assert browser.get(quote(file.file_url)).status_code == 403
	permit(leaver, world.a)
	frappe.db.commit()
	assert browser.get(quote(file.file_url)).status_code == 200


def spellings_of(address: str) -> list[str]:
	"""Frappe makes the same address of all of them."""
	folder, name = address.rsplit("/", 1)
	return [address, f"{folder}/./{name}", f"{folder}/%{ord(name[0]):x}{name[1:]}", get_url(address)]


@pytest.mark.parametrize("server", ["http://elsewhere.example", "https://elsewhere.example:8000"])
def test_a_file_cannot_be_had_by_another_name_of_the_site(browsers, exported, server):
	"""Frappe opens such an address as its own to every caller that calls the site by that name."""
	(file,) = files_of(exported.name)
	for address in spellings_of(file.file_url)[:3]:
		copy = {"file_name": "mine.csv", "file_url": f"{server}{address}", "is_private": 1}
		assert browsers["user_b"].post("/api/resource/File", **copy).status_code >= 400, address


def test_outputs_go_with_their_job(world, queue):
	job = run_export(world, queue, world.user_a)
	(file,) = files_of(job.name)
	assert os.path.exists(file.get_full_path())
	frappe.delete_doc("Background Job", job.name)
	frappe.db.commit()
	assert not frappe.db.exists("File", file.name)
	assert not os.path.exists(file.get_full_path())


def test_outputs_go_with_their_job_when_its_time_is_over(world, queue):
	job = run_export(world, queue, world.user_a)
	(file,) = files_of(job.name)
	plant(job.name, modified=clock.now() - timedelta(days=400))
	frappe.db.commit()
	retention.delete_expired_jobs(clock.now())
	assert not frappe.db.exists("Background Job", job.name)
	assert not frappe.db.exists("File", file.name)
	assert not os.path.exists(file.get_full_path())


# inputs


def test_checksums_are_stored_when_a_job_is_submitted(world, queue):
	text = content()
	file, public = make_file(text, world.user_a), make_file(content(), is_private=0)
	parameters = {"source": {"file": file.file_url, "more": [{"deep": public.file_url}]}, "x": "/elsewhere/a"}
	options = {"job_queue": queue, "owner_user": world.user_a}
	job = submit(make_type("read", "Import/Export"), parameters, world.a, **options)
	stored = frappe.parse_json(frappe.db.get_value("Background Job", job.name, "input_checksums"))
	assert set(stored) == {file.file_url, public.file_url}
	assert stored[file.file_url] == hashlib.sha256(text.encode()).hexdigest()
	done = finish(queue, job.name)
	assert (done.status, done.error_message) == (states.COMPLETED, None)


def test_other_categories_do_not_look_at_files(world, queue):
	parameters = {"source": {"file": "/private/files/nowhere.csv"}}
	job = submit(make_type("read", "General"), parameters, world.a, job_queue=queue)
	assert frappe.db.get_value("Background Job", job.name, "input_checksums") is None


def change(file) -> None:
	with open(file.get_full_path(), "a") as stream:
		stream.write("one more")


def remove(file) -> None:
	os.remove(file.get_full_path())


def forget(file) -> None:
	frappe.delete_doc("File", file.name)


@pytest.mark.parametrize("happens", [change, remove, forget], ids=lambda one: one.__name__)
def test_a_job_whose_input_was_changed_ends(world, queue, happens):
	file = make_file(content(), world.user_a)
	parameters = {"source": {"file": file.file_url}}
	options = {"job_queue": queue, "owner_user": world.user_a}
	job = submit(make_type("read", "Import/Export"), parameters, world.a, **options)
	happens(file)
	done = finish(queue, job.name)
	assert (done.status, done.error_type) == (states.DEAD_LETTER, "Permanent")
	assert done.error_message == f"Input {file.file_url} was changed since the job was submitted"


@pytest.mark.parametrize("mode", ["Same Job", "New Job"])
def test_inputs_are_checked_before_every_attempt(world, queue, mode):
	file = make_file(content(), world.user_a)
	parameters = {"source": {"file": file.file_url}, "failures": 1}
	options = {"job_queue": queue, "owner_user": world.user_a}
	job = submit(make_type("read", "Import/Export", retry_mode=mode), parameters, world.a, **options)
	assert finish(queue, job.name).error_message == "again"
	change(file)
	last = frappe.db.get_value("Background Job", {"retry_of": job.name}) or job.name
	plant(last, run_at=database.utc_now())
	done = finish(queue, last)
	assert done.status == states.DEAD_LETTER
	assert "was changed" in done.error_message


@pytest.mark.parametrize("door", ["submit", "submit_many", "document"])
def test_a_file_that_the_submitter_may_not_read_is_refused_like_one_that_is_not_there(world, door):
	job_type = make_type("read", "Import/Export")
	others = make_file(content(), world.user_b)
	for address in (others.file_url, "/private/files/nowhere.csv"):
		parameters = {"source": {"file": address}}
		ways = {
			"submit": lambda p=parameters: submit(job_type, p, world.a),
			"submit_many": lambda p=parameters: submit_many(job_type, [{}, p], world.a),
			"document": new_job(
				world.a, job_type=job_type, input_parameters=frappe.as_json(parameters)
			).insert,
		}
		frappe.set_user(world.admin_a)
		with pytest.raises(InvalidJobError, match="was not found, or"):
			ways[door]()
		frappe.set_user("Administrator")


def test_nobody_brings_checksums_of_their_own(world, queue):
	file = make_file(content())
	parameters = {"source": {"file": file.file_url}}
	fields = {"job_type": make_type("read", "Import/Export"), "job_queue": queue}
	job = new_job(
		world.a, input_parameters=frappe.as_json(parameters), input_checksums='{"/files/x": "0"}', **fields
	)
	job.insert()
	assert list(frappe.parse_json(job.input_checksums)) == [file.file_url]
	free = new_job(world.a, input_checksums='{"/files/x": "0"}').insert()
	assert not frappe.db.get_value("Background Job", free.name, "input_checksums")
