"""A dictionary whose keys are attributes; a missing one is None."""

from typing import Any


class _dict(dict):
	__slots__ = ()
	__getattr__ = dict.get
	__setattr__ = dict.__setitem__
	__delattr__ = dict.__delitem__
	__setstate__ = dict.update

	def __getstate__(self) -> "_dict":
		return self

	def update(self, *args: Any, **kwargs: Any) -> "_dict":
		super().update(*args, **kwargs)
		return self

	def copy(self) -> "_dict":
		return type(self)(self)
