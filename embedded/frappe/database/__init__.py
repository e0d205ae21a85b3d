"""Opens, creates and fills the database of a site."""

from typing import Any

import psycopg2
from frappe.database.bootstrap import bootstrap_database
from frappe.database.database import PostgresDatabase, savepoint
from psycopg2 import sql

__all__ = ["bootstrap_database", "drop_user_and_database", "get_db", "savepoint", "setup_database"]


def get_db(host: str, port: int, user: str, password: str, cur_db_name: str) -> PostgresDatabase:
	return PostgresDatabase(host, port, user, password, cur_db_name)


def _run_as_root(
	statements: list[sql.Composable], host: str, port: Any, user: str, password: str | None
) -> None:
	connection = psycopg2.connect(host=host, port=port, user=user, password=password, dbname="postgres")
	connection.autocommit = True
	try:
		with connection.cursor() as cursor:
			for statement in statements:
				cursor.execute(statement)
	finally:
		connection.close()


def drop_user_and_database(
	db_name: str, *, host: str, port: Any, root_login: str = "postgres", root_password: str | None = None
) -> None:
	name = sql.Identifier(db_name)
	statements = [
		sql.SQL("drop database if exists {} with (force)").format(name),
		sql.SQL("drop role if exists {}").format(name),
	]
	_run_as_root(statements, host, port, root_login, root_password)


def setup_database(
	db_name: str,
	db_password: str,
	*,
	host: str,
	port: Any,
	root_login: str = "postgres",
	root_password: str | None = None,
	force: bool = False,
) -> None:
	root = {"root_login": root_login, "root_password": root_password}
	if force:
		drop_user_and_database(db_name, host=host, port=port, **root)
	name, password = sql.Identifier(db_name), sql.Literal(db_password)
	statements = [
		sql.SQL("create role {} login password {}").format(name, password),
		sql.SQL("create database {0} owner {0} encoding 'UTF8' template template0").format(name),
	]
	_run_as_root(statements, host, port, root_login, root_password)
