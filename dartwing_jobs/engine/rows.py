"""What Frappe expects in every row, for the many rows that the engine writes without documents."""

from datetime import datetime

from dartwing_jobs.engine import naming


def new(owner: str, now: datetime, **columns) -> dict:
	"""The columns of a row that belongs to somebody and was made now, and its own."""
	name = naming.next_row_name()
	columns.update(name=name, owner=owner, creation=now, modified=now, modified_by=owner)
	return columns
