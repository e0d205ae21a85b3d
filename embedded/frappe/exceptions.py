"""Frappe's exception classes with the HTTP status that each one becomes."""


class NotOfferedError(NotImplementedError):
	"""A part of Frappe that the embedded site does not have."""

	def __init__(self, what: str):
		super().__init__(f"{what} is not offered by the embedded site (see embedded/README.md)")


class NotOfferedAttribute(NotOfferedError, AttributeError):
	"""Lets hasattr and getattr with a default answer as they do where Frappe lacks the name too."""


class NotOfferedModule(NotOfferedError, ModuleNotFoundError):
	pass


class ValidationError(Exception):
	http_status_code = 417


class NameError(Exception):
	http_status_code = 409


class LinkValidationError(ValidationError):
	pass


class CSRFTokenError(Exception):
	http_status_code = 400


class FrappeTypeError(TypeError):
	http_status_code = 417


class SiteNotSpecifiedError(Exception):
	def __init__(self, *args: object):
		super().__init__(*(args or ("Name the site with --site",)))


def _define(base: type[Exception], status: int | None, names: str) -> None:
	body = {"__module__": __name__} | ({"http_status_code": status} if status else {})
	globals().update({name: type(name, (base,), dict(body)) for name in names.split()})


_define(Exception, 401, "AuthenticationError SessionExpired")
_define(Exception, 403, "PermissionError")
_define(Exception, 415, "UnsupportedMediaType")
_define(Exception, 429, "TooManyRequestsError")
_define(Exception, 501, "OutgoingEmailError")
_define(Exception, 503, "SessionStopped")
_define(
	Exception,
	None,
	"QueryDeadlockError QueryTimeoutError TooManyWritesError RetryBackgroundJobError SecurityException",
)
_define(NameError, None, "DuplicateEntryError")
_define(LinkValidationError, None, "CancelledLinkError")
_define(
	CSRFTokenError, None, "InvalidAuthorizationHeader InvalidAuthorizationPrefix InvalidAuthorizationToken"
)
_define(ValidationError, 401, "InvalidKeyError")
_define(ValidationError, 404, "DoesNotExistError PageDoesNotExistError IncorrectSitePath")
_define(ValidationError, 410, "LinkExpired")
_define(ValidationError, 429, "RateLimitExceededError")
_define(ValidationError, 503, "InReadOnlyMode QueueOverloaded")
_define(
	ValidationError,
	None,
	"""AppNotInstalledError CannotChangeConstantError CharacterLengthExceededError CircularLinkingError
	DataError DataTooLongException DocstatusTransitionError DocumentLockedError EmptyTableError
	ImplicitCommitError InvalidColumnName InvalidDates InvalidEmailAddressError InvalidNameError
	InvalidPhoneNumberError InvalidStatusError LinkExistsError MandatoryError NonNegativeError
	TemplateNotFoundError TimestampMismatchError UniqueValidationError UpdateAfterSubmitError""",
)
