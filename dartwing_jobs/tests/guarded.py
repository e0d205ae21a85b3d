"""A handler that writes in every way there is, for tests. What it writes is a DocType of this app."""

import frappe

from dartwing_jobs import PermanentError, TransientError, job_handler

DOCTYPE = "Job Queue"
TABLE = f"tab{DOCTYPE}"


def insert(name: str) -> None:
	frappe.get_doc({"doctype": DOCTYPE, "queue_name": f"{name}-more", "rq_queue": "default"}).insert()


def save(name: str) -> None:
	frappe.get_doc(DOCTYPE, name).update({"description": "written"}).save()


def db_set(name: str) -> None:
	frappe.get_doc(DOCTYPE, name).db_set("description", "written")


def delete(name: str) -> None:
	frappe.delete_doc(DOCTYPE, name)


def set_value(name: str) -> None:
	frappe.db.set_value(DOCTYPE, name, "description", "written")


def db_delete(name: str) -> None:
	frappe.db.delete(DOCTYPE, {"name": name})


def bulk_insert(name: str) -> None:
	frappe.db.bulk_insert(DOCTYPE, ["name", "queue_name"], [(f"{name}-more", f"{name}-more")])


def builder_insert(name: str) -> None:
	frappe.qb.into(DOCTYPE).columns("name", "queue_name").insert(f"{name}-more", f"{name}-more").run()


def builder_update(name: str) -> None:
	queue = frappe.qb.DocType(DOCTYPE)
	frappe.qb.update(queue).set(queue.description, "written").where(queue.name == name).run()


def builder_delete(name: str) -> None:
	queue = frappe.qb.DocType(DOCTYPE)
	frappe.qb.from_(queue).where(queue.name == name).delete().run()


def sql(name: str) -> None:
	frappe.db.sql(f"update `{TABLE}` set description = 'written' where name = %s", (name,))


def loud_sql(name: str) -> None:
	frappe.db.sql(
		f"""
		-- select
		UPDATE /* only reading */ `{TABLE}`
		SET description = %(text)s WHERE name = %(name)s""",
		{"text": "written", "name": name},
	)


def second_statement(name: str) -> None:
	frappe.db.sql(f"select 1; update `{TABLE}` set description = 'written' where name = '{name}'")


WAYS = {
	function.__name__: function
	for function in (
		*(insert, save, db_set, delete, set_value, db_delete, bulk_insert),
		*(builder_insert, builder_update, builder_delete, sql, loud_sql, second_statement),
	)
}


@job_handler
def write(parameters: dict, context) -> None:
	WAYS[parameters["way"]](parameters["name"])


@job_handler
def write_and_hide_it(parameters: dict, context) -> str:
	try:
		WAYS[parameters["way"]](parameters["name"])
	except Exception as error:
		if parameters["then"] == "raise":
			raise TransientError("The network was slow") from error
		if parameters["then"] == "commit":
			context.checkpoint()
	return "all is well"


@job_handler
def write_after_the_commit(parameters: dict, context) -> None:
	def late() -> None:
		WAYS[parameters["way"]](parameters["name"])
		frappe.db.commit()

	frappe.db.after_commit.add(late)


@job_handler
def use_the_context(parameters: dict, context) -> dict:
	context.progress(50, "half")
	context.log("a note")
	context.checkpoint()
	step = context.idempotent("step", lambda: 7)
	child = context.submit("sample_job", {"steps": 1}, job_queue=parameters["queue"])
	frappe.log_error(title="guarded", message="something that people should know")
	if frappe.db.count("Job Queue") < 1 or step != 7:
		raise PermanentError("reading failed")
	return {"child": child.name}


@job_handler
def write_a_child_row(parameters: dict, context) -> None:
	user = frappe.get_doc("User", parameters["user"])
	row = user.append("roles", {"role": "Dartwing Admin", "name": frappe.generate_hash(length=10)})
	row.db_insert()


@job_handler
def submit_child_and_checkpoint(parameters: dict, context) -> None:
	context.submit(parameters["job_type"], {}, depends_on=parameters["parent"])
	context.checkpoint()
