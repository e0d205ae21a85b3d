"""A limit of calls per address or per value of a request parameter, in fixed windows."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import frappe
from frappe import _


def rate_limit(
	key: str | None = None,
	limit: int | Callable[[], int] = 5,
	seconds: int = 24 * 60 * 60,
	methods: str | list = "ALL",
	ip_based: bool = True,
) -> Callable:
	def decorate(fn: Callable) -> Callable:
		@wraps(fn)
		def limited(*args: Any, **kwargs: Any) -> Any:
			request = getattr(frappe.local, "request", None)
			if request and (methods == "ALL" or request.method.upper() in methods):
				_count(key, limit() if callable(limit) else limit, seconds, ip_based)
			return fn(*args, **kwargs)

		return limited

	return decorate


def _count(key: str | None, limit: int, seconds: int, ip_based: bool) -> None:
	parts = [frappe.local.request_ip] if ip_based else []
	parts += [str(frappe.local.form_dict.get(key, ""))] if key else []
	if not any(parts):
		frappe.throw(_("A rate limit needs a key or an address"))
	counter = frappe.cache.make_key(f"rl:{frappe.local.form_dict.cmd}:{':'.join(parts)}")
	if not int(frappe.cache.get(counter) or 0):
		frappe.cache.setex(counter, seconds, 0)
	if frappe.cache.incrby(counter, 1) > limit:
		frappe.throw(_("Too many requests; please try again later"), frappe.RateLimitExceededError)
