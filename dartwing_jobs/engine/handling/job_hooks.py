"""What apps hook around each job, Frappe's own among them: `before_job` and `after_job`."""

import inspect
import time
from collections.abc import Callable

import frappe

# hooks of Frappe that ask Redis before each job whether they are switched on: what they ask for
SWITCHES = {"frappe.recorder.record": "recorder-intercept"}
# how long one answer holds: people who switch something on do not notice, hundreds of jobs a second do
SWITCH_SECONDS = 0.5
_known: dict[tuple[str, str], list[Callable]] = {}
_switched_on: dict[tuple[str, str], tuple[float, bool]] = {}


def call(hook: str, **arguments) -> None:
	"""Other apps prepare and clean up around each job, as they do around Frappe's own."""
	for function in _functions(hook):
		function(**arguments)


def forget() -> None:
	"""Looks up anew who hooks what."""
	_known.clear()
	_switched_on.clear()


def _functions(hook: str) -> list[Callable]:
	"""Looked up once per process, as code is."""
	key = frappe.local.site, hook
	if key not in _known:
		_known[key] = [_prepared(path) for path in frappe.get_hooks(hook)]
	return _known[key]


def _prepared(path: str) -> Callable:
	function = _taking_what_it_names(frappe.get_attr(path))
	if path not in SWITCHES:
		return function
	return lambda **given: function(**given) if _is_on(SWITCHES[path]) else None


def _taking_what_it_names(function: Callable) -> Callable:
	"""As `frappe.call` does it, but the signature is read once and not for each job."""
	parameters = inspect.signature(function).parameters.values()
	if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
		return function
	names = {parameter.name for parameter in parameters}
	return lambda **given: function(**{name: given[name] for name in given.keys() & names})


def _is_on(switch: str) -> bool:
	key = frappe.local.site, switch
	looked_at, is_on = _switched_on.get(key, (0.0, False))
	if time.monotonic() - looked_at > SWITCH_SECONDS:
		is_on = bool(frappe.cache.get_value(switch))
		_switched_on[key] = time.monotonic(), is_on
	return is_on
