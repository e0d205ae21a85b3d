"""What a secret looks like: names that announce one, and shapes that are one wherever they stand.

Pure rules. Payloads are refused by them (`parameters.py`), errors and logs are masked (`engine/sanitize.py`).
Only shapes that hardly anything else has: a rule that cries wolf is switched off by its users.

Every rule is linear, whatever it is given: a pattern begins with a literal or a few letters, looks back only
from there, and what it repeats cannot be begun a second time inside the same run.
"""

import base64
import binascii
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from dartwing_jobs.secret_names import NAMES, ONLY_IN_TEXTS, WHICH, Names
from dartwing_jobs.vendor_tokens import VENDORS

MASK = "***"
# nothing shorter has the shape of a secret (pwd=1); nor has a shorter key, as no vendor's token is that short
SHORTEST, LONG_KEY = 5, 14
# names are not longer, nor is what stands in a secret's place
LONGEST_NAME, LONGEST_PLACEHOLDER = 80, 2000

SECRET_NAME = re.compile(rf"(?: {' | '.join(one.pattern for one in NAMES)} ) {WHICH} \Z", re.VERBOSE)
NAMES_HINTS = tuple(hint for one in NAMES for hint in one.hints)
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# a number can be a password, but the number of a token is a count
NUMBERS_TOO = re.compile(r"pass|pw|otp|wort|woord|mdp", re.IGNORECASE)
# {"api": {"key": …}} says the same as {"api_key": …}
SAYS_NOTHING = frozenset({"key", "value", "plaintext", "raw"})
# {"name": "password", "value": …}
NAMED_BY, VALUES = ("name", "key", "header", "field", "param", "variable"), ("value", "val")
# an object of more fields is no such pair
MOST_NAMES = 20
# of a JSON Web Key
PRIVATE_PARTS = frozenset({"d", "k", "p", "q", "dp", "dq", "qi"})

# what stands where a secret would: nothing, a mask, a variable, a state, or where the secret is kept
PLACEHOLDER = re.compile(
	r"""(?ix)
	[*x•.?#\s_-]* | <[^<>]*> | \[[^][]*\] | \$?\{\{?[^{}]*\}?\} | %s | %\(\w+\)s | %\w+%
	| (?-i: \$[A-Z][A-Z0-9_]* )
	| none | null | nil | undefined | true | false | yes | no | n/a
	| (?: not[ _-]? )? (?: required | optional | given | needed | provided | configured | found | shown )
	| hidden | redacted | masked | removed | filtered | protected | encrypted | expired | revoked | rotated
	| invalid | missing | wrong | incorrect | unknown | default | reset | empty | set | unset | changed
	| password | passwort | passwd | passphrase | secret | token | api[ _-]?key | authorization | credentials?
	| bearer | basic | digest | oauth2?
	| your[ _-][\w -]+
	| (?: env | vault | op | conf | config | site_config | ssm | keyring | secretref ) : (?: // )? [\w./#-]+
	| arn:aws:(?: secretsmanager | ssm ) :\S+"""
)


def _is_in_earnest(secret: str) -> bool:
	return not is_placeholder(secret.strip("\"'\\"))


def _is_login(secret: str) -> bool:
	"""Basic authentication is base64 of user:password; anything else after "basic" is a word."""
	try:
		decoded = base64.b64decode(secret, validate=True)
	except (binascii.Error, ValueError):
		return False
	return b":" in decoded and decoded.decode(errors="replace").isprintable()


def is_no_word(secret: str) -> bool:
	"""Where a word would do as well: a secret has something that words have not."""
	return bool(NO_WORD.search(secret)) and _is_in_earnest(secret)


@dataclass(frozen=True)
class Rule:
	"""Where a secret stands in a text: the group `secret` of a pattern, if `is_secret` agrees.

	`hints`: a text that has none of them, in small letters, needs no look. Without any, every text does.
	`folds`: its pattern is in small letters, and so is the text that it sees (as fast as no flag of `re` is).
	"""

	written: str
	hints: tuple[str, ...]
	is_secret: Callable[[str], bool] = _is_in_earnest
	folds: bool = True

	@cached_property
	def pattern(self) -> re.Pattern:
		"""Made when it is needed: there are many, and nearly no text needs any."""
		return re.compile(self.written, re.VERBOSE | re.DOTALL)

	def spans(self, text: str, small: str) -> list[tuple[int, int]]:
		"""Where secrets begin and end; `small` is the text in small letters."""
		found, harmless = [], set()
		for match in self.pattern.finditer(small if self.folds else text):
			start, end = match.span(1)
			word = text[start:end]
			if word in harmless:
				continue
			if self.is_secret(word):
				found.append((start, end))
			else:
				harmless.add(word)
		return found


def announced(
	pattern: str, names: tuple[Names, ...] = NAMES, is_secret: Callable[[str], bool] = _is_in_earnest
) -> list[Rule]:
	"""A rule for each kind of names, which stand in the pattern at NAME."""
	return [Rule(pattern.replace("NAME", one.pattern), one.hints, is_secret) for one in names]


def _vendor(start: str, rest: str) -> Rule:
	"""Not in the middle of something longer, such as base64 or a slug."""
	begins = re.escape(start)
	return Rule(rf"(?P<secret>{begins}(?<![\w-]{begins}){rest})", (start.lower(),), folds=False)


NO_WORD = re.compile(r"\d | [!@$%^*+=~|] | [a-z][A-Z]", re.VERBOSE)
# base64 of "PRIVATE KEY", at each of the three places where it may begin
KEY_IN_BASE64 = "UFJJVkFURSBLRV | BSSVZBVEUgS0VZ | QUklWQVRFIEtFW"
SCHEMES = "(?: bearer | basic | token | digest | negotiate | apikey | bot | ssws | splunk )"
# a quote that does not end is one that was cut off
QUOTED = r""" "[^"]*(?: (?<=\\)"[^"]* )*(?: " | \Z ) | '[^']*(?: (?<=\\)'[^']* )*(?: ' | \Z ) """
VALUE = rf"""(?=\S) (?P<secret> {QUOTED} | \\{{1,8}}"[^"]*(?: " | \Z )
	| \$\{{\{{?[^{{}}\s]{{0,100}}\}}\}}? | \{{\{{?[^{{}}\s]{{0,100}}\}}\}}? | [^\s,;&"'<>}}\])]+ )"""
RULES = (
	Rule(
		r"""-----?[ ]?BEGIN[ ][A-Z0-9 ]{0,40}PRIVATE[ ]KEY(?:[ ]BLOCK)?[ ]?-{4,5}
		(?P<secret> .*? ) (?= -----?[ ]?END | \Z )""",
		("private key",),
		folds=False,
	),
	Rule(
		r"Private-Lines:[ ]\d{1,4} [\s\\rn]{1,8} (?P<secret> [A-Za-z0-9+/=\s\\]{40,} )",
		("private-lines:",),
		folds=False,
	),
	Rule(
		rf"""(?P<secret> (?: {KEY_IN_BASE64} | b3BlbnNzaC1rZXktdjE ) [\w+/=-]*
		(?: (?: \\n | \r?\n ) [\w+/=-]{{20,}} )* )""",
		("ufjjvkfurs", "bssvzbveug", "quklwqvrfi", "b3blbnnzac1rzxktdje"),
		folds=False,
	),
	*(_vendor(start, rest) for start, rest in VENDORS.items()),
	Rule(r":(?P<secret> AA(?<=\d{8}:AA)[\w-]{33} (?![\w-]) )", (":aa",), folds=False),
	Rule(r"(?P<secret> Q~(?<=[\w~.-]{3}\dQ~)[\w~.-]{31,34} (?![\w~.-]) )", ("q~",), folds=False),
	Rule(r"(?P<secret> [0-9a-f](?<![0-9a-f].)[0-9a-f]{31}-us\d{1,2} (?!\w) )", ("-us",)),
	Rule(r"\.atlasv1\.(?P<secret> [\w-]{60,} )", (".atlasv1.",)),
	# Discord's bots: base64 of a number; and Frappe's pairs of keys
	Rule(
		r"(?P<secret> [MNO](?<![\w-].)[DTjz][\w-]{21,26}\.[\w-]{6}\.[\w-]{27,40} (?![\w-]) )", (), folds=False
	),
	Rule(r":(?<=(?<![0-9a-f])[0-9a-f]{15}:)(?P<secret> [0-9a-f]{15} (?![0-9a-f]) )", (), folds=False),
	# addresses that let anybody in who knows them
	Rule(r"hooks\.slack(?:-gov)?\.com/\w{1,32}/(?P<secret> [\w/-]{20,} )", ("hooks.slack",)),
	Rule(
		r"discord(?:app)?\.com/api/(?: v\d{1,2}/ )?webhooks/\d{1,25}/(?P<secret> [\w/-]{20,} )",
		("/webhooks/",),
	),
	Rule(r"office\.com/webhook(?: b2 )?/(?P<secret> [\w@/-]{20,} )", ("office.com/",)),
	Rule(r"hooks\.zapier\.com/hooks/\w{1,16}/(?P<secret> [\w/]{8,} )", ("hooks.zapier.com/",)),
	Rule(
		r"""bearer(?<!\wbearer) \s{1,8} (?! oauth | rfc )
		(?P<secret> (?= [a-z._~+/=|:-]{0,99}\d ) (?= [\d._~+/=|:-]{0,99}[a-z] ) [a-z0-9._~+/=|:-]{6,} )""",
		("bearer",),
	),
	Rule(
		r"""token \s{1,4} (?P<secret> (?= [a-z._-]{0,99}\d ) [a-z0-9._-]{6,99}
		: (?= [a-z._-]{0,99}\d ) [a-z0-9._-]{6,} )""",
		("token ",),
	),
	Rule(r"[Bb](?i:asic) \s{1,8} (?P<secret> [A-Za-z0-9+/]{6,}={0,2} )", ("basic",), _is_login, folds=False),
	Rule(
		r"""auth(?<=["'_]auth) \\{0,8} ["']? \s{0,8} [:=] \s{0,8} \\{0,8} ["']?
		(?P<secret> [A-Za-z0-9+/]{6,}={0,2} )""",
		("auth",),
		_is_login,
		folds=False,
	),
	Rule(
		rf"""authorization \\{{0,8}} ["']? \s{{0,8}} [:=,] \s{{0,8}} \\{{0,8}} ["']?
		{SCHEMES} \s{{1,8}} {VALUE}""",
		("authorization",),
	),
	# user:password@ in an address; the password itself may have an @
	Rule(r"""://[^\s/:@"'<>]*: (?P<secret> [^\s/?#"'<>]+ ) @""", ("://",)),
	Rule(r"oracle:thin:[^\s/:@]{1,99}/ (?P<secret> [^\s@/]{1,99} ) @", ("oracle:thin:",)),
	Rule(
		r"""[?&] (?: x-amz- | x-goog- )? sig(?:nature)? = (?P<secret> [^\s&#;"'<>]{16,} )""",
		("sig=", "signature="),
	),
	# as in addresses, connection strings and .env files: no blank around the sign
	*announced(rf"NAME {WHICH} = {VALUE}", (*NAMES, *ONLY_IN_TEXTS)),
	Rule(r"""[_-]session = (?P<secret> [^\s,;&"'<>]{16,} )""", ("session",)),
	# as in JSON that is kept as text
	*announced(rf"""NAME {WHICH} \\{{0,8}} ["'] \s{{0,8}} : \s{{0,8}} (?= \\{{0,8}}["'] ) {VALUE}"""),
	# as in YAML, or at the end of a sentence
	*announced(
		rf"""NAME {WHICH} : [ \t]{{1,8}}
		(?P<secret> (?= [a-z!-/:-@_]{{0,99}}\d ) (?= [^a-z\s]{{0,99}}[a-z] )
		[^\s,;&"'<>}}\])]{{5,}} ) [ \t]{{0,8}} (?= [\r\n] | \Z )""",
	),
	# on a command line
	*announced(rf"--(?: [a-z]{{1,20}}- ){{0,3}}NAME [ \t]{{1,4}} {VALUE}", is_secret=is_no_word),
	Rule(
		r"""[ ]-(?: u | -user[ =] ) [ ]{0,4} ["']? [^\s:"']{1,99} :
		(?P<secret> (?!\d{1,9}\b) [^\s"']{4,} )""",
		(" -u", "--user"),
		is_no_word,
	),
	# in a database's own words
	Rule(
		rf"""(?: identified \s{{1,8}} by | with \s{{1,8}} password | encrypted \s{{1,8}} password ) \s{{1,8}}
		(?= ' ) (?P<secret> {QUOTED} )""",
		("identified", "password '"),
	),
	Rule(r"login \s{1,8} [^\s]{1,99} \s{1,8} password \s{1,8} (?P<secret> [^\s]+ )", ("login",)),
)


def _shortest(hints: set[str]) -> tuple[str, ...]:
	"""Without those that another one is a part of."""
	return tuple(one for one in sorted(hints) if not any(other in one for other in hints - {one}))


# what a text must have for anything here to apply to it: most payloads are done with after this
ALL_HINTS = {"kty", *(hint for one in RULES for hint in one.hints)}
HINTS = _shortest({hint for hint in ALL_HINTS if hint.isascii()})
HINTS_ELSEWHERE = _shortest({hint for hint in ALL_HINTS if not hint.isascii()})
UNMARKED = tuple(one for one in RULES if not one.hints)
# letters that have no width: all that Unicode lets a reader pass over
INVISIBLE = re.compile(
	"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
	"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# as JSON and Python write letters; not those that cannot be stored
ESCAPED = re.compile(r"\\{1,8}(?:u(?!d[89a-f]|00[01])([0-9a-f]{4})|x(?![01])([0-9a-f]{2}))", re.IGNORECASE)


def plain(text: str) -> str:
	"""The text as it reads: without invisible letters, and with the usual ones in place of their likes."""
	if "\\u" in text or "\\x" in text:
		text = ESCAPED.sub(lambda match: chr(int(match[1] or match[2], 16)), text)
	if text.isascii():
		return text
	return unicodedata.normalize("NFKC", INVISIBLE.sub("", text))


def small_letters(text: str) -> str:
	"""As long as the text: what is found at a place in one is at the same place in the other."""
	return text.lower() if text.isascii() else text.replace("\u0130", "I").lower()


def might_hold_secrets(text: str) -> bool:
	"""False when there is certainly none. Cheap, because every payload is asked."""
	text = plain(text)
	small = small_letters(text)
	if _has_any(HINTS, small) or (not small.isascii() and _has_any(HINTS_ELSEWHERE, small)):
		return True
	return any(one.pattern.search(text) for one in UNMARKED)


def _has_any(hints: tuple[str, ...], small: str) -> bool:
	for hint in hints:  # noqa: SIM110 any() takes twice as long
		if hint in small:
			return True
	return False


def is_secret_name(name: str) -> bool:
	"""Whether a parameter of this name holds a secret: by the end of the name, in any spelling."""
	return _is_secret_name(name[-LONGEST_NAME:])


@lru_cache(maxsize=4096)
def _is_secret_name(name: str) -> bool:
	name = plain(name)
	small = small_letters(name)
	if not _has_any(NAMES_HINTS, small):
		return False
	return bool(SECRET_NAME.search(small) or SECRET_NAME.search(CAMEL.sub("_", name).lower()))


def is_placeholder(text: str) -> bool:
	return len(text) < LONGEST_PLACEHOLDER and PLACEHOLDER.fullmatch(text.strip()) is not None


def has_secret(text: str, rules: tuple[Rule, ...] = RULES) -> bool:
	"""Whether a text holds something that has the shape of a secret."""
	if len(text) < SHORTEST:
		return False
	text = plain(text)
	small = small_letters(text)
	return any(one.spans(text, small) for one in _rules_for(small, rules))


def _rules_for(small: str, rules: tuple[Rule, ...] = RULES) -> tuple[Rule, ...]:
	"""Those that could find something."""
	return tuple(one for one in rules if not one.hints or _has_any(one.hints, small))


def mask(text: str, rules: tuple[Rule, ...] = RULES) -> str:
	"""The text without what these rules call a secret. As it was written, unless that has hidden one."""
	masked = _mask(text, rules)
	read = plain(masked)
	if read == masked:
		return masked
	masked_read = _mask(read, rules)
	return masked if masked_read == read else masked_read


def _mask(text: str, rules: tuple[Rule, ...]) -> str:
	small = small_letters(text)
	for one in rules:
		if one.hints and not _has_any(one.hints, small):
			continue
		if spans := one.spans(text, small):
			ends = [0, *(end for _start, end in spans)]
			kept = [text[end:start] for end, (start, _end) in zip(ends, spans, strict=False)]
			text = MASK.join([*kept, text[ends[-1] :]])
			small = small_letters(text)
	return text


def find(parameters: dict, allowed: list[str] | tuple = ()) -> list[str]:
	"""The paths of secrets in parameters, such as customer.auth.password, but for those that are allowed.

	In an allowed path `*` stands for one key or place in a list.
	"""
	found = _Search(parameters).paths(parameters, (), False)
	return [path for path in found if not any(_fits(path, one) for one in allowed)]


class _Search:
	"""One look through parameters, by the rules that could find something in them at all."""

	def __init__(self, parameters: dict):
		whole = plain(json.dumps(parameters, ensure_ascii=False, default=str))
		self.rules = _rules_for(small_letters(whole))

	def paths(self, value, path: tuple[str, ...], is_named: bool) -> Iterator[str]:
		"""`is_named`: a name above says that what is here is a secret."""
		if isinstance(value, dict):
			yield from self._in_object(value, path)
		elif isinstance(value, list | tuple):
			yield from self._in_list(value, path, is_named)
		elif isinstance(value, str):
			if (is_named and not is_placeholder(value)) or has_secret(value, self.rules):
				yield ".".join(path)
		elif is_named and type(value) is int and value and NUMBERS_TOO.search(path[-1]):
			yield ".".join(path)

	def _in_object(self, fields: dict, path: tuple[str, ...]) -> Iterator[str]:
		named_values = _named_values(fields)
		for key, value in fields.items():
			key = str(key)
			if len(key) >= LONG_KEY and has_secret(key, self.rules):
				yield ".".join((*path, mask(key)))
			name = f"{path[-1]}_{key}" if path and key in SAYS_NOTHING else key
			is_named = key in named_values or is_secret_name(name) or _is_docker_login(key, value)
			yield from self.paths(value, (*path, key), is_named)

	def _in_list(self, values: list | tuple, path: tuple[str, ...], is_named: bool) -> Iterator[str]:
		before = None
		for place, one in enumerate(values):
			is_here = is_named or _is_announced(before, one, is_pair=len(values) == 2)
			yield from self.paths(one, (*path, str(place)), is_here)
			before = one


def _named_values(fields: dict) -> frozenset[str]:
	"""The keys of values that others beside them name: {"name": "password", "value": …}, or a private JWK."""
	if "kty" in fields:
		return PRIVATE_PARTS
	small = {str(key).lower(): key for key in fields} if len(fields) < MOST_NAMES else {}
	if small.keys().isdisjoint(VALUES):
		return frozenset()
	names = (fields.get(small.get(key)) for key in NAMED_BY)
	is_secret = any(isinstance(name, str) and is_secret_name(name) for name in names)
	return frozenset(small[key] for key in VALUES if key in small) if is_secret else frozenset()


def _is_docker_login(key: str, value) -> bool:
	return key == "auth" and isinstance(value, str) and _is_login(value)


def _is_announced(before, value, is_pair: bool) -> bool:
	"""Whether a text in a list names the next one: ["Authorization", "Bearer …"], ["--password", …]."""
	if not (isinstance(before, str) and isinstance(value, str) and is_secret_name(before)):
		return False
	is_option = before.startswith("-") and not value.startswith("-")
	is_name = value.isidentifier() and is_secret_name(value)
	is_header = is_pair and (is_no_word(value) or has_secret(f"{before}: {value}"))
	return (is_option or is_header) and not is_name


def _fits(path: str, pattern: str) -> bool:
	steps, wanted = path.split("."), pattern.split(".")
	return len(steps) == len(wanted) and all(w in ("*", s) for s, w in zip(steps, wanted, strict=True))
