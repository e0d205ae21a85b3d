"""What apps hook around each job, Frappe's own among them: `before_job` and `after_job`."""

import inspect
import time
from collections.abc import Callable

import frappe

# hooks of Frappe that ask Redis before each job whether they are switched on: what they ask for
SWITCHES = {"frappe.recorder.record": "recorder-intercept"}
# how long one answer holds: people who switch something on do not notice, hundreds of jobs a second do
SWITCH_SECONDS = 0.5
# by site, hook and what it is called with: each function, and which of that it takes
_known: dict[tuple, list[tuple[Callable, tuple[str, ...]]]] = {}
_switched_on: dict[tuple[str, str], tuple[float, bool]] = {}


def call(hook: str, **arguments) -> None:
	"""Other apps prepare and clean up around each job, as they do around Frappe's own."""
	for function, names in _functions(hook, tuple(arguments)):
		function(**{name: arguments[name] for name in names})


def forget() -> None:
	"""Looks up anew who hooks what."""
	_known.clear()
	_switched_on.clear()


def _functions(hook: str, given: tuple[str, ...]) -> list[tuple[Callable, tuple[str, ...]]]:
	"""Looked up once per process, as code is."""
	key = frappe.local.site, hook, given
	if key not in _known:
		_known[key] = [_prepared(path, given) for path in frappe.get_hooks(hook)]
	return _known[key]


def _prepared(path: str, given: tuple[str, ...]) -> tuple[Callable, tuple[str, ...]]:
	function = frappe.get_attr(path)
	names = _taken_by(function, given)
	if path not in SWITCHES:
		return function, names
	return lambda **taken: function(**taken) if _is_on(SWITCHES[path]) else None, names


def _taken_by(function: Callable, given: tuple[str, ...]) -> tuple[str, ...]:
	"""What a function names, as `frappe.call` has it; but its signature is read once, not for each job."""
	parameters = inspect.signature(function).parameters.values()
	if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
		return given
	named = {parameter.name for parameter in parameters}
	return tuple(name for name in given if name in named)


def _is_on(switch: str) -> bool:
	key = frappe.local.site, switch
	looked_at, is_on = _switched_on.get(key, (0.0, False))
	if time.monotonic() - looked_at > SWITCH_SECONDS:
		is_on = bool(frappe.cache.get_value(switch))
		_switched_on[key] = time.monotonic(), is_on
	return is_on
