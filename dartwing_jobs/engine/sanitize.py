"""Makes texts fit to be stored: without what no database takes, and without secrets.

A service's answer may carry what it was asked. Secrets are found by the rules for payloads
(`dartwing_jobs/secrets.py`), and a few more: a log line hardly loses by being masked once too often, so here
it is enough that a secret is announced.
"""

from dartwing_jobs import secrets
from dartwing_jobs.secret_names import NAMES, ONLY_IN_TEXTS, WHICH
from dartwing_jobs.secrets import QUOTED, RULES, SCHEMES, VALUE, announced

MASK = secrets.MASK
# what is looked at beyond what is kept, so that no secret is cut in two before it is found
MARGIN = 20_000
ANNOUNCED = (
	# password: …, "api_key" = …, Authorization: Bearer …
	*announced(
		rf"""NAME {WHICH} \\{{0,8}} ["']? \s{{0,8}} [:=] \s{{0,8}}
		(?: (?=[abdnst]) {SCHEMES} \s{{1,8}} )? {VALUE}""",
		(*NAMES, *ONLY_IN_TEXTS),
	),
	# {"name": "password", "value": …}
	*announced(
		rf"""NAME {WHICH} ["'] \s{{0,8}} , \s{{0,8}} ["'] val(?:ue)? ["'] \s{{0,8}} : \s{{0,8}} {VALUE}"""
	),
	# ["Authorization", …]; but a list of columns stays
	*announced(
		rf"""NAME {WHICH} ["'] \s{{0,8}} , \s{{0,8}} (?P<secret> {QUOTED} )""",
		is_secret=secrets.is_no_word,
	),
)


def text(value: str) -> str:
	"""The text as it can be stored, with secrets masked."""
	return masked(storable(value))


def storable(value: str) -> str:
	"""The text without what no database takes: halves of characters, and NUL."""
	return value.encode(errors="replace").decode().replace("\x00", "\ufffd")


def masked(value: str) -> str:
	return secrets.mask(value, (*RULES, *ANNOUNCED)) if secrets.might_hold_secrets(value) else value


def beginning(value: str, length: int) -> str:
	"""The first part of a text that may be of any length, with secrets masked."""
	return text(value[: length + MARGIN])[:length]


def end(value: str, length: int) -> str:
	"""The last part, likewise."""
	return text(value[-length - MARGIN :])[-length:]


def value(tree):
	"""A value as JSON has it, with secrets masked: by their names, and in its texts."""
	return _masked(tree, (), frozenset(secrets.find(tree)))


def _masked(tree, path: tuple[str, ...], found: frozenset[str]):
	if isinstance(tree, dict):
		return {masked(key): _masked(one, (*path, key), found) for key, one in tree.items()}
	if isinstance(tree, list):
		return [_masked(one, (*path, str(place)), found) for place, one in enumerate(tree)]
	if ".".join(path) in found:
		return MASK
	return masked(tree) if isinstance(tree, str) else tree
