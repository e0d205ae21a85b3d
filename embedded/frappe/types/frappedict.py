"""A dictionary whose keys are attributes; a missing one is None."""


class _dict(dict):
	__slots__ = ()
	__getattr__, __setattr__, __delattr__ = dict.get, dict.__setitem__, dict.__delitem__

	def __getstate__(self) -> None:
		"""The items are all there is to pickle."""

	def update(self, *args, **kwargs) -> "_dict":
		super().update(*args, **kwargs)
		return self

	def copy(self) -> "_dict":
		return type(self)(self)
