"""SQL functions for frappe.qb under Frappe's names."""

from typing import Any

from pypika.functions import *  # noqa: F403
from pypika.functions import Cast, Extract, ToChar
from pypika.terms import Arithmetic, ArithmeticExpression, CustomFunction, Function

GroupConcat = CustomFunction("STRING_AGG", ["column", "separator"])
DateFormat = ToChar
Cast_ = Cast


class Concat_ws(Function):
	def __init__(self, *terms: Any, **kwargs: Any):
		super().__init__("CONCAT_WS", *terms, **kwargs)


class Round(Function):
	def __init__(self, term: Any, decimal: int = 0, **kwargs: Any):
		super().__init__("ROUND", term, decimal, **kwargs)


class CombineDatetime(ArithmeticExpression):
	def __init__(self, datepart: Any, timepart: Any, alias: str | None = None):
		left = Cast(datepart, "date") if isinstance(datepart, str) else datepart
		right = Cast(timepart, "time") if isinstance(timepart, str) else timepart
		super().__init__(Arithmetic.add, left, right, alias=alias)


class UnixTimestamp(Extract):
	def __init__(self, field: Any, alias: str | None = None):
		super().__init__("epoch", field=field, alias=alias)
