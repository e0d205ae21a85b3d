"""Templates: a job's type and parameters, to be used again with overrides."""


def merged(defaults: dict, overrides: dict) -> dict:
	"""Defaults with overrides laid over them, by RFC 7396; `docs/templates.md` has the table.

	Objects merge key by key at every depth, null takes a key away, anything else replaces what was there.
	What is not overridden is shared with the defaults, not copied.
	"""
	result = dict(defaults)
	unmerged = [(result, overrides)]
	while unmerged:  # no recursion: parameters of any depth must be refused by their check, not by Python
		target, patch = unmerged.pop()
		for key, value in patch.items():
			if value is None:
				target.pop(key, None)
			elif isinstance(value, dict):
				below = target.get(key)
				target[key] = dict(below) if isinstance(below, dict) else {}
				unmerged.append((target[key], value))
			else:
				target[key] = value
	return result
