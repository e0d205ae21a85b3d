"""Frappe's exception classes with the HTTP status that each one becomes."""

import builtins


class NotOfferedError(NotImplementedError):
	def __init__(self, what: str):
		super().__init__(f"{what} is not offered by the embedded site (see embedded/README.md)")


class NotOfferedAttribute(NotOfferedError, AttributeError):
	"""Lets hasattr and getattr with a default answer as they do where Frappe lacks the name too."""


class NotOfferedModule(NotOfferedError, ModuleNotFoundError):
	pass


# base, status (0: that of the base, or none), classes
CLASSES = """
Exception 0 QueryDeadlockError QueryTimeoutError SiteNotSpecifiedError
Exception 401 AuthenticationError
Exception 403 PermissionError
Exception 409 NameError
Exception 417 ValidationError
TypeError 417 FrappeTypeError
NameError 0 DuplicateEntryError
ValidationError 404 DoesNotExistError IncorrectSitePath
ValidationError 429 RateLimitExceededError
ValidationError 503 QueueOverloaded
ValidationError 0 AppNotInstalledError CannotChangeConstantError CharacterLengthExceededError NonNegativeError
ValidationError 0 DataError DocumentLockedError InvalidColumnName InvalidEmailAddressError LinkExistsError
ValidationError 0 LinkValidationError MandatoryError TimestampMismatchError UniqueValidationError
"""
for _base, _status, *_names in map(str.split, CLASSES.strip().splitlines()):
	_parent = globals().get(_base) or getattr(builtins, _base)
	_body = {"__module__": __name__} | ({"http_status_code": int(_status)} if int(_status) else {})
	globals().update({_name: type(_name, (_parent,), dict(_body)) for _name in _names})
