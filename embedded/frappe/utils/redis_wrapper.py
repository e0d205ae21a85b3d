"""frappe.cache: Redis with the site's prefix, and a copy per context so that a value is fetched once."""

import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import frappe
import redis
from redis.exceptions import ConnectionError


class RedisWrapper(redis.Redis):
	def __call__(self) -> "RedisWrapper":
		return self

	def connected(self) -> bool:
		with suppress(ConnectionError):
			return bool(self.ping())
		return False

	def make_key(self, key: str, user: Any = None, shared: bool = False) -> Any:
		if shared:
			return key
		if user:
			key = f"user:{frappe.session.user if user is True else user}:{key}"
		return f"{frappe.conf.db_name}|{key}".encode()

	def set_value(
		self, key: str, val: Any, user: Any = None, expires_in_sec: int | None = None, shared: bool = False
	) -> None:
		full = self.make_key(key, user, shared)
		if not expires_in_sec:
			frappe.local.cache[full] = val
		with suppress(ConnectionError):
			self.set(full, pickle.dumps(val), ex=expires_in_sec or None)

	def get_value(
		self,
		key: str,
		generator: Callable | None = None,
		user: Any = None,
		expires: bool = False,
		shared: bool = False,
	) -> Any:
		full = self.make_key(key, user, shared)
		if full in frappe.local.cache:
			return frappe.local.cache[full]
		stored = None
		with suppress(ConnectionError):
			stored = self.get(full)
		value = None if stored is None else pickle.loads(stored)
		if expires:
			return value
		if value is None and generator:
			value = generator()
			self.set_value(key, value, user=user)
		frappe.local.cache[full] = value
		return value

	def get_keys(self, key: str) -> list[bytes]:
		with suppress(ConnectionError):
			return self.keys(self.make_key(key + "*"))
		return []

	def delete_keys(self, key: str) -> None:
		self.delete_value(self.get_keys(key), make_keys=False)

	def delete_value(self, keys: Any, user: Any = None, make_keys: bool = True, shared: bool = False) -> None:
		keys = list(keys) if isinstance(keys, list | tuple) else [keys]
		keys = [self.make_key(key, user, shared) for key in keys] if make_keys else keys
		for key in keys:
			frappe.local.cache.pop(key, None)
		with suppress(ConnectionError):
			if keys:
				self.delete(*keys)

	delete_key = delete_value

	def hset(self, name: str, key: str, value: Any, shared: bool = False) -> None:
		full = self.make_key(name, shared=shared)
		frappe.local.cache.setdefault(full, {})[key] = value
		with suppress(ConnectionError):
			super().hset(full, key, pickle.dumps(value))

	def hget(self, name: str, key: str, generator: Callable | None = None, shared: bool = False) -> Any:
		full = self.make_key(name, shared=shared)
		known = frappe.local.cache.setdefault(full, {})
		if not key or key in known:
			return known.get(key)
		stored = None
		with suppress(ConnectionError):
			stored = super().hget(full, key)
		if stored is not None:
			known[key] = pickle.loads(stored)
			return known[key]
		if not generator:
			return None
		value = generator()
		self.hset(name, key, value, shared=shared)
		return value

	def hgetall(self, name: str) -> dict:
		return {key: pickle.loads(value) for key, value in super().hgetall(self.make_key(name)).items()}

	def hdel(self, name: str, key: str, shared: bool = False) -> None:
		full = self.make_key(name, shared=shared)
		frappe.local.cache.get(full, {}).pop(key, None)
		with suppress(ConnectionError):
			super().hdel(full, key)

	def hexists(self, name: str, key: str, shared: bool = False) -> bool:
		with suppress(ConnectionError):
			return bool(super().hexists(self.make_key(name, shared=shared), key))
		return False

	def hkeys(self, name: str) -> list[bytes]:
		with suppress(ConnectionError):
			return super().hkeys(self.make_key(name))
		return []

	def exists(self, *names: str, user: Any = None, shared: bool = False) -> int:
		with suppress(ConnectionError):
			return super().exists(*(self.make_key(name, user, shared) for name in names))
		return 0


def _prefixed(command: str) -> Callable:
	def run(self: RedisWrapper, name: str, *args: Any) -> Any:
		return getattr(redis.Redis, command)(self, self.make_key(name), *args)

	return run


LISTS = ("lpush", "rpush", "lpop", "rpop", "llen", "lrange", "ltrim")
SETS = ("sadd", "srem", "sismember", "spop", "srandmember", "smembers")
for _command in (*LISTS, *SETS):
	setattr(RedisWrapper, _command, _prefixed(_command))


def setup_cache() -> RedisWrapper:
	return RedisWrapper.from_url(frappe.conf.redis_cache)
