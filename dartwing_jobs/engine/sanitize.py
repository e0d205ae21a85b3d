"""Takes secrets out of error texts before they are stored: a service's answer may carry what it was asked."""

import re

MASK = "***"
# a word that announces a secret, and what follows it: password=…, "api_key": "…", Authorization: Bearer …
ANNOUNCED = re.compile(
	r"""(?ix)
	( (?: pass(?:word|wd|phrase) | (?<![a-z]) (?: pass | pwd | sid ) | secret (?: [_-]?key )? | token
	  | api[_-]?key | access[_-]?key | private[_-]?key | authorization | credential s? | session[_-]?id )
	  \\* ["']? \s* [:=] \s* (?: bearer \s+ | basic \s+ | token \s+ )? )
	( "(?: [^"\\] | \\. )*" | '(?: [^'\\] | \\. )*' | \\+"[^"]*" | [^\s,;&"'}\])]+ )"""
)
# user:password@ in an address; the password itself may have an @
IN_ADDRESS = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://[^\s/:@]*):[^\s/]+@")
# what is a secret wherever it stands
BEARER = re.compile(r"(?i)\b(bearer\s+)[a-z0-9._~+/=-]{20,}")
PRIVATE_KEY = re.compile(r"(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|\Z)")


def text(value: str) -> str:
	"""The text with secrets masked."""
	for secret in (PRIVATE_KEY, ANNOUNCED, BEARER):
		value = secret.sub(rf"\1{MASK}", value)
	return IN_ADDRESS.sub(rf"\1:{MASK}@", value)
