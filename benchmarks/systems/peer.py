"""A job system that knows no Frappe: it reaches the plain table by a connection of its own."""

from benchmarks.systems import plain_table
from benchmarks.systems.tallied import TalliedSystem


class Peer(TalliedSystem):
	def table(self) -> plain_table.PlainTable:
		return plain_table.in_this_process()
