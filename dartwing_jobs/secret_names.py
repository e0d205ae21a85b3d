"""Names that announce a secret, in the languages of those who write them. For `secrets.py`.

By first letter: a pattern that begins with a letter is found as fast as that letter.
"""

from typing import NamedTuple


class Names(NamedTuple):
	"""Ends of names such as db_password, X-Api-Key or clientSecret, in small letters.

	`hints`: what a text must have for any of them to be in it.
	"""

	pattern: str
	hints: tuple[str, ...]


NAMES = (
	Names(
		r"""p(?: a(?: ss (?: w(?: or[dt]s? | [öo]rter | ds? )
				| phrases? | ord | [_-]?codes? | (?<![a-z]pass) )
			| lavra [\s_-]? passe | sahitza | rool | rolă )
		| w (?<![a-z]pw) d? | sw (?<![a-z]psw) | rivate [\s_-]? keys? )""",
		("pass", "pw", "psw", "pasahitza", "parool", "parolă", "private"),
	),
	Names(
		r"""s(?: ecrets? (?: [\s_-]? (?=[ak]) (?: access[\s_-]? )? keys? )?
		| (?: igning | hared ) [\s_-]? keys? | eed [\s_-]? phrases?
		| enha | alasana | ifre | lapta[žz]odis )""",
		("secret", "signing", "shared", "seed", "senha", "salasana", "sifre", "slaptazodis", "slaptažodis"),
	),
	# but tokens of pages and devices open nothing
	Names(
		r"""token (?![abd-oqs-uw-z]) (?: (?<! [tceh]token ) (?<! [tceh][\s_-]token )
		| (?<= [tceh]token ) (?<! nexttoken ) (?<! pagetoken ) (?<! synctoken ) (?<! pushtoken )
		  (?<! devicetoken )
		| (?<= [tceh][\s_-]token ) (?<! next.token ) (?<! page.token ) (?<! sync.token ) (?<! push.token )
		  (?<! device.token ) )""",
		("token",),
	),
	Names(
		r"a(?: pi[\s_-]?keys? | ccess[\s_-]?keys? | uth(?: orization | [\s_-]?keys? ) | dgangskode )",
		("api", "access", "auth", "adgangskode"),
	),
	Names(
		r"""(?: encryption[\s_-]?keys? | credentials? | otp(?<![a-z]otp)
		| recovery[\s_-]?(?: phrases? | codes? ) )""",
		("encryption", "credential", "otp", "recovery"),
	),
	Names(
		r"""k(?: ennw[oö]rt(?: er )? | ata[\s_-]?(?: sandi | laluan ) | odeord )""",
		("kennw", "sandi", "laluan", "kodeord"),
	),
	Names(
		r"""m(?: ot[\s_-]?de[\s_-]?passe | [ậa]t[\s_-]?kh[ẩa]u | dp(?<![a-z]mdp) | aster[\s_-]?keys? )""",
		("passe", "khau", "khẩu", "mdp", "master"),
	),
	Names(
		"(?: contrase(?: ñ | ny? )a | wachtwoord(?: en )? | geslo | jelsz[óo] )",
		("contrase", "wachtwoord", "geslo", "jelsz"),
	),
	Names("l(?: [öo]senord | ozinka )", ("senord", "lozinka")),
	Names(r"h(?: as[lł]o | eslo | mac[\s_-]?keys? )", ("haslo", "hasło", "heslo", "hmac")),
	Names(
		r"(?: парол[ьіа] | лозинка | κωδικός[\s_-]?πρόσβασης | συνθηματικό | şifre | पासवर्ड | รหัสผ่าน )",
		("парол", "лозинка", "πρόσβασης", "συνθηματικό", "şifre", "पासवर्ड", "รหัสผ่าน"),
	),
	Names(
		r"(?: סיסמ[הא] | ססמה | كلمة[\s_-]?(?: المرور | السر ) | رمز[\s_-]?عبور | گذرواژه )",
		("סיסמ", "ססמה", "المرور", "السر", "عبور", "گذرواژه"),
	),
	Names(
		"(?: 密码 | 密碼 | 口令 | パスワード | 暗証番号 | 비밀번호 )",
		("密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호"),
	),
)
# in texts these announce a secret; as names of parameters they name a message, a training, a ledger as often
ONLY_IN_TEXTS = (
	Names(r"s(?: id(?<![a-z]sid) | ess(?: ion )?[_-]?id )", ("sid", "session", "sessid")),
	Names(r"a(?: ccount[_-]?key | spxauth )", ("account", "aspxauth")),
)
# what may follow: password_2, token_value; most letters after a name make another word of it
WHICH = r"""(?![abd-oqs-uw-z])
	(?: [_-]? (?=[\dcvpr]) (?: \d{1,9} | confirm | confirmation | value | plaintext | raw ) )?"""
