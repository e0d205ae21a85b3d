"""What handlers of fault tests leave behind: rows of a table that has a unique key and no DocType."""

import frappe

TABLE = "dartwing_effect"


def create_table() -> None:
	drop_table()
	frappe.db.sql_ddl(
		f"create table {TABLE} (effect varchar(140) not null unique, job varchar(140) not null)"
	)
	frappe.db.commit()


def drop_table() -> None:
	frappe.db.sql_ddl(f"drop table if exists {TABLE}")
	frappe.db.commit()


def leave(effect: str, job_name: str) -> None:
	frappe.db.sql(f"insert into {TABLE} (effect, job) values (%s, %s)", (effect, job_name))


def left_by(job_name: str) -> list[str]:
	return frappe.db.sql(f"select effect from {TABLE} where job = %s", (job_name,), pluck=True)


def left_in(queue: str) -> int:
	"""How many effects the jobs of a queue have left."""
	query = f"select count(*) from {TABLE} join `tabBackground Job` on name = job"
	return frappe.db.sql(f"{query} where job_queue = %s or origin_queue = %s", (queue, queue))[0][0]
