"""Arguments of whitelisted functions, checked and cast by their annotations with pydantic."""

import inspect
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ForwardRef, Union

import pydantic
from frappe.exceptions import FrappeTypeError


def validate_argument_types(func: Callable, apply_condition: Callable[[], bool] = lambda: True) -> Callable:
	@wraps(func)
	def checked(*args: Any, **kwargs: Any) -> Any:
		if apply_condition():
			args, kwargs = transform_parameter_types(func, args, kwargs)
		return func(*args, **kwargs)

	return checked


def transform_parameter_types(func: Callable, args: tuple, kwargs: dict) -> tuple[list, dict]:
	names = list(_signature(func).parameters)
	new_args, new_kwargs = list(args), dict(kwargs)
	for index, value in enumerate(args[: len(names)]):
		new_args[index] = _cast(func, names[index], value)
	for name, value in kwargs.items():
		new_kwargs[name] = _cast(func, name, value)
	return new_args, new_kwargs


def _cast(func: Callable, name: str, value: Any) -> Any:
	expected = _accepted(func, name)
	if expected is None:
		return value
	try:
		return _adapter(expected).validate_python(value)
	except (TypeError, pydantic.ValidationError) as error:
		given = type(value).__name__
		raise FrappeTypeError(f"Argument {name} must be of type {expected}, not {given}") from error


@lru_cache(maxsize=2048)
def _accepted(func: Callable, name: str) -> Any:
	"""The annotation, widened by the default's type; None when there is nothing to check."""
	annotation = func.__annotations__.get(name)
	parts = (annotation, *getattr(annotation, "__args__", ()))
	if annotation is None or any(isinstance(part, ForwardRef | str) for part in parts):
		return None
	annotation = Union[int, bool, float] if annotation is bool else annotation  # noqa: UP007
	parameter = _signature(func).parameters.get(name)
	if parameter is None or parameter.default is inspect.Parameter.empty:
		return annotation
	return Union[annotation, type(parameter.default)]  # noqa: UP007


@lru_cache(maxsize=2048)
def _adapter(expected: Any) -> pydantic.TypeAdapter:
	return pydantic.TypeAdapter(expected, config=pydantic.ConfigDict(arbitrary_types_allowed=True))


@lru_cache(maxsize=2048)
def _signature(func: Callable) -> inspect.Signature:
	return inspect.signature(func)
