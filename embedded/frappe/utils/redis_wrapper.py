"""frappe.cache: Redis with the site's prefix, and a copy per context so that a value is fetched once."""

import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import frappe
import redis


class RedisWrapper(redis.Redis):
	def __call__(self) -> "RedisWrapper":
		return self

	def _try(self, command: str, *args: Any, **options: Any) -> Any:
		"""Without Redis nothing is cached, and nothing fails."""
		with suppress(redis.exceptions.ConnectionError):
			return getattr(redis.Redis, command)(self, *args, **options)

	def make_key(self, key: str) -> bytes:
		return f"{frappe.conf.db_name}|{key}".encode()

	def set_value(self, key: str, val: Any, expires_in_sec: int | None = None) -> None:
		if not expires_in_sec:
			frappe.local.cache[self.make_key(key)] = val
		self._try("set", self.make_key(key), pickle.dumps(val), ex=expires_in_sec)

	def get_value(self, key: str, generator: Callable | None = None, expires: bool = False) -> Any:
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

	def delete_value(self, keys: Any) -> None:
		for full in map(self.make_key, keys if isinstance(keys, list | tuple) else [keys]):
			frappe.local.cache.pop(full, None)
			self._try("delete", full)

	def hset(self, name: str, key: str, value: Any) -> None:
		frappe.local.cache.setdefault(self.make_key(name), {})[key] = value
		self._try("hset", self.make_key(name), key, pickle.dumps(value))

	def hget(self, name: str, key: str, generator: Callable | None = None) -> Any:
		known = frappe.local.cache.setdefault(self.make_key(name), {})
		if key not in known:
			stored = self._try("hget", self.make_key(name), key)
			if stored is not None:
				known[key] = pickle.loads(stored)
			elif generator:
				self.hset(name, key, generator())
		return known.get(key)

	def hdel(self, name: str, key: str) -> None:
		frappe.local.cache.get(self.make_key(name), {}).pop(key, None)
		self._try("hdel", self.make_key(name), key)


def _prefixed(command: str) -> Callable:
	return lambda self, name, *args: self._try(command, self.make_key(name), *args)


COMMANDS = ("exists", "hexists", "hkeys", "lpush", "rpush", "lpop", "rpop", "llen", "lrange", "ltrim")
for _command in (*COMMANDS, "sadd", "srem", "sismember", "smembers"):
	setattr(RedisWrapper, _command, _prefixed(_command))
