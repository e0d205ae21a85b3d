"""Arguments of whitelisted functions, checked and cast by their annotations with pydantic."""

import inspect
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ForwardRef, Union

import pydantic
from frappe.exceptions import FrappeTypeError

CONFIG = pydantic.ConfigDict(arbitrary_types_allowed=True)


def validate_argument_types(func: Callable, apply_condition: Callable[[], bool] = lambda: True) -> Callable:
	signature = inspect.signature(func)

	adapter = cache(lambda name: pydantic.TypeAdapter(_accepted(signature.parameters[name]), config=CONFIG))

	@wraps(func)
	def checked(*args: Any, **kwargs: Any) -> Any:
		if not apply_condition():
			return func(*args, **kwargs)
		call = signature.bind_partial(*args, **kwargs)
		for name, value in call.arguments.items():
			try:
				call.arguments[name] = adapter(name).validate_python(value)
			except (TypeError, pydantic.ValidationError) as error:
				raise FrappeTypeError(f"Argument {name} cannot be a {type(value).__name__}") from error
		return func(*call.args, **call.kwargs)

	return checked


def _accepted(parameter: inspect.Parameter) -> Any:
	"""The annotation, widened by the default's type."""
	annotation = parameter.annotation
	parts = (annotation, *getattr(annotation, "__args__", ()))
	is_variable = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
	if annotation is parameter.empty or is_variable or any(isinstance(p, ForwardRef | str) for p in parts):
		return Any
	annotation = Union[int, bool, float] if annotation is bool else annotation  # noqa: UP007
	default = () if parameter.default is parameter.empty else (type(parameter.default),)
	return Union[(annotation, *default)]
