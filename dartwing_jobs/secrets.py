"""What a secret looks like: names that announce one, and shapes that are one wherever they stand.

Pure rules. Payloads are refused by them (`parameters.py`), errors and logs are masked (`engine/sanitize.py`).
Only shapes that hardly anything else has: a rule that cries wolf is switched off by its users.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

MASK = "***"
# nothing shorter has the shape of a secret (pwd=1); nor has a shorter key, as no vendor's token is that short
SHORTEST, LONG_KEY = 5, 14

# the end of a name such as db_password, X-Api-Key or clientSecret; tokens of pages and devices open nothing
NAME = r"""(?:
	pass(?: words? | wds? | phrases? ) | (?<![a-z]) (?: pass | pwd | otp )
	| secrets? (?: [_-]? (?: access[_-]? )? keys? )?
	| (?<! next ) (?<! page ) (?<! sync ) (?<! push ) (?<! device )
	  (?<! next[_-] ) (?<! page[_-] ) (?<! sync[_-] ) (?<! push[_-] ) (?<! device[_-] ) token
	| (?: api | access | private | encryption | signing | master ) [_-]? keys?
	| authorization | credentials?
)"""
# what may follow: password_2, token_value
WHICH = r"(?: [_-]? (?: \d+ | confirm | confirmation | value | plaintext | raw ) )?"
# in texts these announce a secret; as names of parameters they name a message, a training, a ledger as often
ONLY_IN_TEXTS = r"(?: (?<![a-z]) sid | session [_-]? id | account[_-]?key )"

SECRET_NAME = re.compile(
	rf"{NAME} {WHICH} \Z",
	re.IGNORECASE | re.VERBOSE,
)
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# a number can be a password, but the number of a token is a count
NUMBERS_TOO = re.compile(r"pass|pwd|otp", re.IGNORECASE)

# what stands where a secret would: nothing, a mask, a variable, a state, or where the secret is kept
PLACEHOLDER = re.compile(
	r"""(?ix)
	[*x•.?#\s_-]* | <[^<>]*> | \[[^][]*\] | \$?\{\{?[^{}]*\}?\} | %s | %\(\w+\)s | %\w+%
	| (?-i: \$[A-Z][A-Z0-9_]* )
	| none | null | nil | undefined | true | false | yes | no | n/a
	| (?: not[ _-]? )? (?: required | optional | given | needed | provided | configured | found | shown )
	| hidden | redacted | masked | removed | filtered | protected | encrypted | expired | revoked | rotated
	| invalid | missing | wrong | incorrect | unknown | default | reset | empty | set | unset | changed
	| password | passwd | passphrase | secret | token | api[ _-]?key | authorization | credentials?
	| your[ _-][\w -]+
	| (?: env | vault | op | conf | config | site_config | ssm | keyring | secretref ) : (?: // )? [\w./#-]+
	| arn:aws:(?: secretsmanager | ssm ) :\S+"""
)

# not in the middle of something longer, such as base64 or a slug
ALONE = r"(?<![\w-])"
# vendors mark their tokens, so that they can be found where they should not be: how each begins, and goes on
VENDORS = {
	"AKIA": "[A-Z0-9]{16}(?![A-Za-z0-9])",
	"ASIA": "[A-Z0-9]{16}(?![A-Za-z0-9])",
	**dict.fromkeys(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), "[A-Za-z0-9]{36,}"),
	"github_pat_": r"\w{22,}",
	"glpat-": r"[\w-]{20,}",
	"xox": "[abeoprs]-[A-Za-z0-9-]{10,}",
	"xapp-": "[A-Za-z0-9-]{20,}",
	**dict.fromkeys(("sk_live_", "sk_test_", "rk_live_", "rk_test_"), "[A-Za-z0-9]{16,}"),
	"whsec_": "[A-Za-z0-9+/=]{20,}",
	"AIza": r"[\w-]{35}",
	"ya29.": r"[\w-]{20,}",
	"GOCSPX-": r"[\w-]{20,}",
	"sk-": r"(?:(?:proj|ant|svcacct)-[\w-]{20,}|[A-Za-z0-9]{40,})",
	"SG.": r"[\w-]{16,}\.[\w-]{16,}",
	"key-": "[0-9a-f]{32}(?![0-9a-f])",
	"npm_": "[A-Za-z0-9]{36}",
	"pypi-AgE": r"[\w-]{20,}",
	"dckr_pat_": r"[\w-]{20,}",
	"hf_": "[A-Za-z0-9]{30,}",
	"hvs.": r"[\w-]{20,}",
	"dop_v1_": "[0-9a-f]{64}",
	**dict.fromkeys(("shpat_", "shpca_", "shppa_", "shpss_"), "[0-9a-fA-F]{32}"),
	"sq0": r"[a-z]{3}-[\w-]{22,}",
	"eyJ": r"[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}",
}
# how the names above end
ENDS = ("password", "passwd", "phrase", "pass", "pwd", "otp", "secret", "key", "token")
ENDS += ("authorization", "credential")


def _is_in_earnest(match: re.Match) -> bool:
	return not is_placeholder(match["secret"].strip("\"'\\"))


def _is_login(match: re.Match) -> bool:
	"""Basic authentication is base64 of user:password; anything else after "basic" is a word."""
	try:
		decoded = base64.b64decode(match["secret"], validate=True)
	except (binascii.Error, ValueError):
		return False
	return b":" in decoded and decoded.decode(errors="replace").isprintable()


class Rule(NamedTuple):
	"""Where a secret stands in a text: the group `secret`, if `is_secret` agrees.

	`hints`: a text that has none of them, in small letters, needs no look.
	"""

	pattern: re.Pattern
	hints: tuple[str, ...]
	is_secret: Callable[[re.Match], bool] = _is_in_earnest


def rule(hints: tuple[str, ...], pattern: str, is_secret=_is_in_earnest, flags: int = re.IGNORECASE) -> Rule:
	return Rule(re.compile(pattern, flags | re.VERBOSE), hints, is_secret)


def _vendor(start: str, rest: str) -> Rule:
	return Rule(re.compile(f"{ALONE}(?P<secret>{re.escape(start)}{rest})"), (start.lower(),))


def _after(*signs: str) -> tuple[str, ...]:
	"""A name's end, one or many, and right behind it a sign."""
	return tuple(end + plural + sign for end in ENDS for plural in ("", "s") for sign in signs)


VALUE = r"""(?P<secret> "(?: [^"\\] | \\. )*" | '(?: [^'\\] | \\. )*' | \\+"[^"]*"
	| \$?\{\{?[^{}\s]*\}\}? | [^\s,;&"'<>}\])]+ )"""
RULES = (
	rule(
		("private key",),
		r"-----BEGIN\ [A-Z ]*PRIVATE\ KEY(?:\ BLOCK)?----- (?P<secret> .*? ) (?= -----END | \Z )",
		flags=re.DOTALL,
	),
	*(_vendor(start, rest) for start, rest in VENDORS.items()),
	rule((":aa",), rf"{ALONE} (?P<secret> \d{{8,10}}:AA[\w-]{{33}} (?![\w-]) )", flags=0),
	# addresses that let anybody in who knows them
	rule(
		("hooks.slack.com/", "/api/webhooks/"),
		r"(?: hooks\.slack\.com/\w+/ | discord\w*\.com/api/webhooks/\d+/ ) (?P<secret> [\w/-]{20,} )",
	),
	rule(("bearer",), r"\b bearer \s+ (?P<secret> (?= [a-z._~+/=-]*\d ) [a-z0-9._~+/=-]{20,} )"),
	rule(("basic",), r"\b basic \s+ (?P<secret> [a-z0-9+/]{6,}={0,2} )", _is_login),
	# user:password@ in an address; the password itself may have an @
	rule(("://",), r"""://[^\s/:@"'<>]*: (?P<secret> [^\s/?#"'<>]+ ) @"""),
	rule(
		("sig=", "signature="),
		r"""[?&] (?: x-amz- | x-goog- )? sig(?:nature)? = (?P<secret> [^\s&#;"'<>]{16,} )""",
	),
	# as in addresses, connection strings and .env files: no blank around the sign
	rule((*_after("="), "sid=", "session"), rf"(?: {NAME} | {ONLY_IN_TEXTS} ) = {VALUE}"),
	# as in JSON that is kept as text
	rule(_after('"', "'", "\\"), rf"""{NAME} \\* ["'] \s* : \s* (?= \\*["'] ) {VALUE}"""),
)


def _shortest(hints: set[str]) -> tuple[str, ...]:
	"""Without those that another one is a part of."""
	return tuple(one for one in sorted(hints) if not any(other in one for other in hints - {one}))


# what a text must have for anything here to apply to it: most payloads are done with after this
HINTS = _shortest({*ENDS, *(hint for one in RULES for hint in one.hints)})
HINTED = {hint: [one for one in RULES if any(hint in own for own in one.hints)] for hint in HINTS}


def might_hold_secrets(text: str) -> bool:
	"""False when there is certainly none. Cheap, because every payload is asked."""
	return _has_any(HINTS, text.lower())


def _has_any(hints: tuple[str, ...], small: str) -> bool:
	for hint in hints:  # noqa: SIM110 any() takes twice as long
		if hint in small:
			return True
	return False


def is_secret_name(name: str) -> bool:
	"""Whether a parameter of this name holds a secret: by the end of the name, in any spelling."""
	if not _has_any(ENDS, name.lower()):
		return False
	return bool(SECRET_NAME.search(name) or SECRET_NAME.search(CAMEL.sub("_", name)))


def is_placeholder(text: str) -> bool:
	return PLACEHOLDER.fullmatch(text.strip()) is not None


def has_secret(text: str) -> bool:
	"""Whether a text holds something that has the shape of a secret."""
	small = text.lower()
	seen = [hint for hint in HINTS if hint in small] if len(text) >= SHORTEST else []
	rules = [one for hint in seen for one in HINTED[hint] if _has_any(one.hints, small)]
	return any(one.is_secret(match) for one in rules for match in one.pattern.finditer(text))


def mask(text: str, rules: tuple[Rule, ...] = RULES) -> str:
	"""The text without what these rules call a secret."""
	for one in rules:
		text = one.pattern.sub(lambda match, one=one: _masked(match, one), text)
	return text


def find(parameters: dict, allowed: list[str] | tuple = ()) -> list[str]:
	"""The paths of secrets in parameters, such as customer.auth.password, but for those that are allowed.

	In an allowed path `*` stands for one key or place in a list.
	"""
	return [path for path in _paths(parameters, (), False) if not any(_fits(path, one) for one in allowed)]


def _paths(value, path: tuple[str, ...], is_named: bool) -> Iterator[str]:
	"""`is_named`: a name above says that what is here is a secret."""
	if isinstance(value, dict):
		yield from _paths_in_object(value, path)
	elif isinstance(value, list | tuple):
		for place, one in enumerate(value):
			yield from _paths(one, (*path, str(place)), is_named)
	elif isinstance(value, str):
		if has_secret(value) or (is_named and not is_placeholder(value)):
			yield ".".join(path)
	elif is_named and type(value) is int and value and NUMBERS_TOO.search(path[-1]):
		yield ".".join(path)


def _paths_in_object(fields: dict, path: tuple[str, ...]) -> Iterator[str]:
	named_value = _named_value(fields)
	for key, value in fields.items():
		key = str(key)
		if len(key) >= LONG_KEY and has_secret(key):
			yield ".".join((*path, mask(key)))
		# {"api": {"key": …}} says the same as {"api_key": …}
		name = f"{path[-1]}_{key}" if path and key == "key" else key
		yield from _paths(value, (*path, key), is_secret_name(name) or key == named_value)


def _named_value(fields: dict) -> str | None:
	"""The key of a value whose name stands beside it: {"name": "password", "value": …}."""
	if "value" not in fields:
		return None
	names = (fields.get(key) for key in ("name", "key", "header"))
	return "value" if any(isinstance(name, str) and is_secret_name(name) for name in names) else None


def _fits(path: str, pattern: str) -> bool:
	steps, wanted = path.split("."), pattern.split(".")
	return len(steps) == len(wanted) and all(w in ("*", s) for s, w in zip(steps, wanted, strict=True))


def _masked(match: re.Match, by: Rule) -> str:
	if not by.is_secret(match):
		return match[0]
	start, end = match.span("secret")
	return match.string[match.start() : start] + MASK + match.string[end : match.end()]
