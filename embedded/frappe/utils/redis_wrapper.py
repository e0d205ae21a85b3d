"""frappe.cache: Redis with the site's prefix, and a copy per context so that a value is fetched once."""

import pickle
from collections.abc import Callable
from contextlib import suppress

import frappe
import redis


class RedisWrapper:
	def __init__(self, url: str):
		self._redis = redis.Redis.from_url(url)

	def __call__(self) -> "RedisWrapper":
		return self

	def __getattr__(self, name: str):
		raise frappe.NotOfferedAttribute(f"frappe.cache.{name}")

	def _try(self, command: str, *args, **options):
		"""Without Redis nothing is cached, and nothing fails."""
		with suppress(redis.exceptions.ConnectionError):
			return getattr(self._redis, command)(*args, **options)

	def make_key(self, key: str) -> bytes:
		return f"{frappe.conf.db_name}|{key}".encode()

	def set_value(self, key: str, val, expires_in_sec: int | None = None) -> None:
		if not expires_in_sec:
			frappe.local.cache[self.make_key(key)] = val
		self._try("set", self.make_key(key), pickle.dumps(val), ex=expires_in_sec)

	def get_value(self, key: str, generator: Callable | None = None, expires: bool = False):
		full = self.make_key(key)
		if full in frappe.local.cache:
			return frappe.local.cache[full]
		stored = self._try("get", full)
		value = None if stored is None else pickle.loads(stored)
		if expires:
			return value
		if value is None and generator:
			value = generator()
			self.set_value(key, value)
		frappe.local.cache[full] = value
		return value

	def delete_keys(self, key: str) -> None:
		for full in self._try("keys", self.make_key(key + "*")) or []:
			frappe.local.cache.pop(full, None)
			self._try("delete", full)

	def delete_value(self, key: str) -> None:
		frappe.local.cache.pop(self.make_key(key), None)
		self._try("delete", self.make_key(key))
