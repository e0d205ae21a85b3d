"""Deleting, with Frappe's own delete: what goes along, what stays, what is kept."""

import frappe
import pytest

from dartwing_jobs.errors import InvalidJobError
from dartwing_jobs.tests.browser import Browser
from dartwing_jobs.tests.world import (
	make_job,
	make_job_type,
	make_organization,
	make_template,
	make_user,
	plant,
	story,
)


def plant_run(job) -> str:
	name = frappe.generate_hash(length=20)
	values = [[name, job.name, job.organization, "Completed"]]
	frappe.db.bulk_insert(
		"Job Run", fields=["name", "background_job", "organization", "status"], values=values
	)
	return name


def test_an_organization_is_not_blocked_by_its_jobs(world):
	organization = make_organization()
	job = make_job(organization)
	plant_run(job)
	frappe.delete_doc("Organization", organization)
	assert not frappe.db.exists("Organization", organization)
	assert frappe.db.exists("Background Job", job.name)
	assert len(story(job.name)) == 1


def test_a_job_type_with_jobs_is_kept(world):
	job_type = make_job_type()
	make_job(world.a, job_type=job_type.name)
	with pytest.raises(frappe.LinkExistsError, match="Disable it instead"):
		frappe.delete_doc("Job Type", job_type.name)
	assert frappe.db.exists("Job Type", job_type.name)


def test_a_job_type_with_a_template_is_kept(world):
	job_type = make_job_type()
	make_template(world.a, job_type=job_type.name)
	with pytest.raises(frappe.LinkExistsError):
		frappe.delete_doc("Job Type", job_type.name)


def test_a_job_type_that_nobody_uses_can_go():
	job_type = make_job_type()
	frappe.delete_doc("Job Type", job_type.name)
	assert not frappe.db.exists("Job Type", job_type.name)


def test_a_job_takes_its_logs_and_runs_with_it(world):
	job, neighbour = make_job(world.a, status="Completed"), make_job(world.a)
	plant_run(job)
	frappe.delete_doc("Background Job", job.name)
	assert story(job.name) == []
	assert not frappe.db.exists("Job Run", {"background_job": job.name})
	assert len(story(neighbour.name)) == 1


def test_a_job_can_be_deleted_over_http_by_a_system_manager_only(world):
	job = make_job(world.a, status="Completed")
	frappe.db.commit()
	path = f"/api/resource/Background Job/{job.name}"
	assert Browser(world.admin_a).delete(path).status_code == 403
	assert Browser(world.manager).delete(path).status_code == 202
	frappe.db.rollback()
	assert not frappe.db.exists("Background Job", job.name)
	assert story(job.name) == []


def test_a_running_job_is_not_deleted(world):
	job = make_job(world.a, status="Running")
	with pytest.raises(InvalidJobError, match="cancel it before you delete it"):
		frappe.delete_doc("Background Job", job.name)
	assert len(story(job.name)) == 1


def test_a_parent_of_waiting_children_is_kept(world):
	parent = make_job(world.a, status="Completed")
	child = make_job(world.a, depends_on=parent.name)
	with pytest.raises(frappe.LinkExistsError, match=child.name):
		frappe.delete_doc("Background Job", parent.name)
	plant(child.name, status="Canceled")
	frappe.delete_doc("Background Job", parent.name)
	assert not frappe.db.exists("Background Job", parent.name)


def test_names_are_never_reused(world):
	job = make_job(world.a)
	frappe.delete_doc("Background Job", job.name)
	assert make_job(world.a).name > job.name


def test_templates_groups_and_users_are_not_blocked_by_jobs(world):
	template = make_template(world.a)
	group = frappe.get_doc({"doctype": "Job Group", "group_name": "g", "organization": world.a}).insert()
	user = make_user("short-lived", ["Dartwing User"], [world.a])
	job = make_job(world.a, job_template=template.name, job_group=group.name, owner_user=user)
	frappe.delete_doc("Job Template", template.name)
	frappe.delete_doc("Job Group", group.name)
	assert frappe.db.exists("Background Job", job.name)


def test_a_queue_with_jobs_is_kept(world):
	queue = frappe.get_doc({"doctype": "Job Queue", "queue_name": "q:own", "rq_queue": "short"}).insert()
	make_job(world.a, job_queue=queue.name)
	with pytest.raises(frappe.LinkExistsError):
		frappe.delete_doc("Job Queue", queue.name)
