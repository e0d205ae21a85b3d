"""Takes secrets out of texts before they are stored: a service's answer may carry what it was asked.

By the rules for payloads (`dartwing_jobs/secrets.py`), and one more: a log line hardly loses by being masked
once too often, so here it is enough that a secret is announced.
"""

from dartwing_jobs import secrets
from dartwing_jobs.secrets import HINTS, NAME, ONLY_IN_TEXTS, RULES, VALUE, WHICH

MASK = secrets.MASK
# password: …, "api_key" = …, Authorization: Bearer …
ANNOUNCED = secrets.rule(
	HINTS,
	rf"""(?: {NAME} {WHICH} | {ONLY_IN_TEXTS} ) \\* ["']? \s* [:=] \s*
	(?: (?: bearer | basic | token ) \s+ )? {VALUE}""",
)


def text(value: str) -> str:
	"""The text with secrets masked."""
	return secrets.mask(value, (*RULES, ANNOUNCED)) if secrets.might_hold_secrets(value) else value
