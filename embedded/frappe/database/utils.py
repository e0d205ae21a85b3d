"""Names that the database layer shares."""

DefaultOrderBy = "KEEP_DEFAULT_ORDERING"
FallBackDateTimeStr = "0001-01-01 00:00:00.000000"
EmptyQueryValues = object()


def is_query_type(query: str, query_type: str | tuple[str, ...]) -> bool:
	return query.lstrip().split(maxsplit=1)[0].lower().startswith(query_type)
