"""What is particular to PostgreSQL: column types, error codes, SQL written for both databases."""

import re
from typing import Any

import frappe
import psycopg2
import psycopg2.extensions
from frappe.database.utils import EmptyQueryValues
from psycopg2 import errorcodes, errors

psycopg2.extensions.register_type(
	psycopg2.extensions.new_type(
		psycopg2.extensions.DECIMAL.values, "DEC2FLOAT", lambda v, _cursor: None if v is None else float(v)
	)
)
BARE_NUMBER = re.compile(r"([=><]+)\s*([+-]?\d+)(\.0)?(?![a-zA-Z\.\d])")
BARE_TABLE = re.compile(r"from tab([\w-]*)", re.IGNORECASE)
LOCATE = re.compile(r"locate\(([^,]+),([^)]+)(\)?)\)", re.IGNORECASE)
IFNULL = re.compile(r"ifnull\(", re.IGNORECASE)

VARCHARS = ("Data", "Link", "Dynamic Link", "Select", "Read Only", "Color", "Icon", "Phone", "Autocomplete")
TEXTS = ("Small Text", "Long Text", "Text", "Code", "Text Editor", "Markdown Editor", "HTML Editor")
BLOBS = ("Password", "Attach", "Attach Image", "Signature", "Barcode", "Geolocation")
TYPE_MAP: dict[str, tuple[str, str | None]] = {
	**dict.fromkeys(VARCHARS, ("varchar", "140")),
	**dict.fromkeys((*TEXTS, *BLOBS), ("text", "")),
	**dict.fromkeys(["Currency", "Float", "Percent", "Duration"], ("decimal", "21,9")),
	**dict.fromkeys(["Int", "Long Int"], ("bigint", None)),
	"Check": ("smallint", None),
	"Date": ("date", ""),
	"Datetime": ("timestamp", None),
	"Time": ("time", "6"),
	"Rating": ("decimal", "3,2"),
	"JSON": ("json", ""),
}


def modify_query(query: str) -> str:
	query = LOCATE.sub(r"strpos(\2\3, \1)", str(query).replace("`", '"'))
	query = BARE_TABLE.sub(r'from "tab\1"', query)
	return IFNULL.sub("coalesce(", BARE_NUMBER.sub(r"\1 '\2'", query).strip())


def modify_values(values: Any) -> Any:
	if values is EmptyQueryValues or not values:
		return values
	if isinstance(values, dict):
		values.update({key: _modify_value(value) for key, value in values.items()})
		return values
	if isinstance(values, list | tuple):
		return [_modify_value(value) for value in values]
	return _modify_value(values)


def _modify_value(value: Any) -> Any:
	if isinstance(value, list | tuple):
		return tuple(_modify_value(v) for v in value)
	return str(value) if isinstance(value, int) else value


def _has_code(code: str) -> staticmethod:
	return staticmethod(lambda e: getattr(e, "pgcode", None) == code)


class PostgresErrors:
	ProgrammingError = TableMissingError = SQLError = psycopg2.ProgrammingError
	OperationalError, InternalError = psycopg2.OperationalError, psycopg2.InternalError
	DataError, InterfaceError = psycopg2.DataError, psycopg2.InterfaceError
	SequenceGeneratorLimitExceeded = errors.SequenceGeneratorLimitExceeded
	InvalidColumnName = frappe.exceptions.InvalidColumnName

	is_deadlocked = _has_code(errorcodes.DEADLOCK_DETECTED)
	is_table_missing = is_missing_table = _has_code(errorcodes.UNDEFINED_TABLE)
	is_missing_column = _has_code(errorcodes.UNDEFINED_COLUMN)
	is_access_denied = _has_code(errorcodes.INSUFFICIENT_PRIVILEGE)
	is_duplicate_entry = _has_code(errorcodes.UNIQUE_VIOLATION)
	is_duplicate_fieldname = _has_code(errorcodes.DUPLICATE_COLUMN)
	is_data_too_long = _has_code(errorcodes.STRING_DATA_RIGHT_TRUNCATION)
	cant_drop_field_or_key = _has_code(errorcodes.CLASS_INTEGRITY_CONSTRAINT_VIOLATION)

	@staticmethod
	def is_timedout(e: Exception) -> bool:
		return isinstance(e, psycopg2.extensions.QueryCanceledError | errors.LockNotAvailable)

	@staticmethod
	def is_statement_timeout(e: Exception) -> bool:
		return PostgresErrors.is_timedout(e) or isinstance(e, frappe.QueryTimeoutError)

	@staticmethod
	def is_read_only_mode_error(e: Exception) -> bool:
		return isinstance(e, errors.ReadOnlySqlTransaction)

	@staticmethod
	def is_syntax_error(e: Exception) -> bool:
		return isinstance(e, errors.SyntaxError)

	@staticmethod
	def is_interface_error(e: Exception) -> bool:
		return isinstance(e, psycopg2.InterfaceError)

	@staticmethod
	def is_primary_key_violation(e: Exception) -> bool:
		return PostgresErrors.is_duplicate_entry(e) and "_pkey" in str(e)

	@staticmethod
	def is_unique_key_violation(e: Exception) -> bool:
		return PostgresErrors.is_duplicate_entry(e) and "_key" in str(e)
