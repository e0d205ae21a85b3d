"""Names that the database layer shares."""

DefaultOrderBy = "KEEP_DEFAULT_ORDERING"
FallBackDateTimeStr = "0001-01-01 00:00:00.000000"
