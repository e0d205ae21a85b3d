"""What a handler may have left in its session of the database: settings, variables, locks, tables of its own.

Each statement that it sends is looked at. What cannot be seen there, such as what a function of the database
does, the server tells: it is asked what the session is like, after jobs that had to do with the database.
"""

import re

# how psycopg2 calls a connection on which no transaction is open, and one whose transaction has failed
IDLE, FAILED = 0, 3
# statements that leave nothing in a session but what a commit or a rollback takes away
HARMLESS = re.compile(
	r"""(?: \s | \( | /\*(?! ! | M! ) (?: (?! \*/ ) . )* \*/ | --[^\n]*(?: \n | \Z ) )*
	(?: \Z
	| (?: select | insert | update | delete | replace | merge | truncate | with | values | table | show | desc
		| describe | explain | commit | rollback | savepoint | release | start | begin (?!\s+not\b) )\b )""",
	re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
# and what does so inside of them: locks, settings and variables
LASTING = re.compile(
	r"get_lock|advisory|set_config|dblink|:=|\binto\s+(?:@|local\s+temp|temp)", re.IGNORECASE
)

# the settings that change what statements do, see, or are allowed
POSTGRES_SETTINGS = (
	"search_path transaction_isolation transaction_read_only default_transaction_read_only timezone datestyle"
	" intervalstyle statement_timeout lock_timeout idle_in_transaction_session_timeout client_encoding"
	" standard_conforming_strings session_replication_role synchronous_commit row_security"
)
_settings = ", ".join(f"current_setting('{name}')" for name in POSTGRES_SETTINGS.split())
# what a session is like, as one text
STATE = {
	"mariadb": """concat_ws('|', database(), current_role(), @@sql_mode, @@tx_isolation, @@tx_read_only,
		@@time_zone, @@max_statement_time, @@innodb_lock_wait_timeout, @@lock_wait_timeout, @@unique_checks,
		@@foreign_key_checks, @@sql_safe_updates, @@sql_select_limit, @@group_concat_max_len, @@lc_time_names,
		@@character_set_client, @@character_set_results, @@collation_connection)""",
	"postgres": f"concat_ws('|', pg_my_temp_schema(), session_user, current_user, {_settings})",
}


def may_last(query) -> bool:
	"""Whether something of a query may outlast its transaction; rather too careful than too bold."""
	text = bytes(query).decode(errors="replace") if isinstance(query, bytes | bytearray) else str(query)
	return bool(LASTING.search(text)) or not all(map(HARMLESS.match, text.split(";")))


class Watch:
	"""Looks at what is sent through one connection, but for the engine's own statements."""

	def __init__(self, db):
		self.db, self.connection = db, db._conn
		self.is_in_doubt = self.has_seen_any = False
		self.kinds: dict[type, type] = {}
		self.is_psycopg = hasattr(self.connection, "cursor_factory")
		plain = own_cursor(db)  # a watch takes the place of the one before
		if self.is_psycopg:
			self.connection.cursor_factory = self.kind_for(type(plain))
		else:
			self.connection.cursor = lambda kind=None: self.kind_for(kind or type(plain))(self.connection)
			self._notice_all_that_is_sent()
		self.cursor = db._cursor = self.connection.cursor()
		self.cursor.dartwing_own = plain
		self.driver = self._as_the_driver_knows_it()

	def is_on(self, db) -> bool:
		return db is self.db and db._conn is self.connection

	def look_at(self, query) -> None:
		self.has_seen_any = True
		self.is_in_doubt = self.is_in_doubt or may_last(query)

	def is_clean(self, db) -> bool:
		"""As far as is known without asking the server."""
		is_same = self.is_on(db) and db._cursor is self.cursor and not self.is_in_doubt
		return is_same and self._as_the_driver_knows_it() == self.driver

	def must_ask(self) -> bool:
		"""Whether anything has been sent, also past all cursors: psycopg2 has begun a transaction then."""
		return self.has_seen_any or self._transaction() != IDLE

	def may_ask(self) -> bool:
		return self._transaction() != FAILED

	def start_over(self) -> None:
		"""Forgets what the engine has sent between two jobs."""
		self.is_in_doubt = self.has_seen_any = False

	def _notice_all_that_is_sent(self) -> None:
		"""The drivers of MariaDB send by this method, whichever cursor was used, and if none was."""
		send = getattr(self.connection.query, "dartwing_plain", self.connection.query)

		def query(*args, **kwargs):
			self.has_seen_any = True
			return send(*args, **kwargs)

		query.dartwing_plain = send
		self.connection.query = query

	def _transaction(self) -> int:
		return self.connection.get_transaction_status() if self.is_psycopg else IDLE

	def _as_the_driver_knows_it(self) -> tuple:
		"""The session behind the connection, and what the driver itself knows about transactions."""
		connection = self.connection
		if not self.is_psycopg:
			return connection.thread_id(), connection.get_autocommit()
		session = connection.get_backend_pid(), connection.encoding
		return *session, connection.autocommit, connection.isolation_level, connection.readonly

	def kind_for(self, kind: type) -> type:
		"""A class of cursors that are watched."""
		if kind not in self.kinds:
			self.kinds[kind] = _watched(kind, self)
		return self.kinds[kind]


def own_cursor(db):
	"""For the engine's statements: one that is not watched."""
	return getattr(db._cursor, "dartwing_own", db._cursor)


def _watched(kind: type, watch: Watch) -> type:
	class Watched(kind):
		def execute(self, query, *args, **kwargs):
			watch.look_at(query)
			return super().execute(query, *args, **kwargs)

		def executemany(self, query, *args, **kwargs):
			watch.look_at(query)
			return super().executemany(query, *args, **kwargs)

		def copy_expert(self, sql, *args, **kwargs):
			watch.look_at(sql)
			return super().copy_expert(sql, *args, **kwargs)

		def callproc(self, procname, *args, **kwargs):
			watch.look_at(f"call {procname}")
			return super().callproc(procname, *args, **kwargs)

	return Watched
