"""What in a line is a secret.

It is known by its name (`password=…`, `--hf-token …`), by where it stands (`https://me:…@host`, a header), or by its
form (`ghp_…`). `token`, `key` and `auth` are words of machine learning, too: behind them, where nothing says that a
credential is meant, only what is long and mixed is a secret.

Hostile lines are read, too: every pattern is linear, since what repeats is bounded or possessive.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

MASK = "***"
Hide = Callable[[str], str]


def hidden(text: str, hide: Hide) -> str:
    """Return the text with what `hide` gives in the place of each secret."""
    for rule in (_PRIVATE_KEY, _AUTHORIZATION, _COOKIE):
        text = rule.applied(text, hide)
    text = _hide_named(text, hide)
    for rule in _OF_FORM:
        text = rule.applied(text, hide)
    return text


# What a name of a credential ends with, and what gives it its value; blanks and commas do so behind an option.
_NAMED = re.compile(
    r"""(?ix)(?P<word>(?:(?:password|passwd|passphrase|secret)\d{0,2}|credential)s?|pwd|pass|token|key|auth(?:orization)?)
    (?:(?P<assigned>["'\\]{0,6}\s{0,16}(?:=>|:=|={1,2}|:{1,2})\s{0,16})
    |["']?\s{0,4},\s{0,4}(?=["'])|["']\s{1,4}(?=["'])|\s{1,16}(?:is\s)?)"""
)
# Quoted, with escaped quotes; or up to what ends a value, which a comma, `;` or `&` does only before another name.
_VALUE = re.compile(
    r"""(?x)(?P<open>[bru]{0,2}(?P<quote>\\{0,6}["']))(?P<quoted>(?!\s|[,)\]}](?:\s|$))(?:(?!(?P=quote))(?:\\.|[^\n]))*+)
    |(?P<plain>(?![)\]}])(?:[^\s"',;&]|["'](?=\w)
        |[,;&](?=[^\s"',;&])(?![A-Za-z_*][\w.*-]{0,40}["'\\]{0,2}\s{0,2}[=:]))++)"""
)
_OPTION = re.compile(r"(?<![\w*-])--?[\w.-]*\Z")
_OPTION_ALONE = re.compile(r"(?<![\w*-])--?\Z")
_USER_OF_URL = re.compile(r"""://[^\s/@"'<>]*\Z""")
_LONGEST_NAME = 40
_TELLING = 64
"""By so much of its beginning a value is judged."""
_PASSWORDS = ("password", "passwd", "passphrase")
# What stands before `token` and `key` where a credential is meant, in lower case.
_OF_TOKENS = (
    *("access", "auth", "api", "secret", "session", "security", "refresh", "bearer", "private", "personal", "oauth"),
    *("oauth2", "jwt", "csrf", "login", "client", "registry", "deploy", "sas", "hf", "hub", "huggingface"),
    *("github", "gitlab", "slack", "wandb", "tracking", "comet", "neptune", "clearml", "kaggle", "replicate", "vault"),
    *("npm", "pypi", "docker", "openai", "anthropic", "nvidia", "ngc", "aws", "azure", "google", "telegram", "discord"),
    *("api ", "auth ", "access "),
)
_OF_KEYS = (
    *("api", "access", "secret", "private", "account", "auth", "encryption", "signing", "shared", "master", "ssh"),
    *("session", "deploy", "storage", "license", "wandb", "hf", "openai", "anthropic", "ngc", "comet"),
    *("api ", "secret ", "private "),
)
_NO_VALUES = frozenset({"none", "null", "nil", "true", "false", "undefined", MASK})
# What is no password behind `pass`: that of a pass of several, and a node that passed.
_CHECKED = re.compile(r"(?i)(?:first|second|third|one|two|multi|single|forward|backward)[_-]\Z")
_HOST = re.compile(
    r"(?i)(?:[a-z]+[_.-])*(?:node|nid|host|gpu|dgx|hgx|cn|compute|worker|server|rack|ip|[abghl]{1,2}\d00)s?"
    r"(?:[_-]?[a-z]{0,5}\d{1,5})+(?:\.[a-z][\w-]*)*[,.)\]]?"
)
_COUNT = re.compile(r"\d{1,5}(?!\w)|\d{1,5}\.")
_RUN = re.compile(r"[A-Za-z0-9]{12,}+")


def _is_mixed(run: str) -> bool:
    """Whether small and large letters and digits are among the characters, as in what a machine made up."""
    return bool(re.search("[a-z]", run) and re.search("[A-Z]", run) and re.search("[0-9]", run))


def _is_made_up(text: str, least: int = 16) -> bool:
    """Whether characters that no word, number or host name has stand in a row: so many, or fewer that are mixed."""
    return any((len(run) >= least and not run.isdigit()) or _is_mixed(run) for run in _RUN.findall(text))


def _is_credential(before: str, word: str) -> bool:
    """Whether a name, of which `before` stands before its last word, can only be that of a credential."""
    small = word.lower()
    if small == "token":
        alone = not before[-1:].isalnum() and before[-1:] != "_"
        if alone and (word.isupper() if before[-1:] != "-" else _OPTION_ALONE.search(before) is not None):
            return True
        return before.lower().rstrip("_-").endswith(_OF_TOKENS)
    if small == "key":
        return before.lower().rstrip("_-").endswith(_OF_KEYS)
    if small == "pass":
        named = before[-1:] in ("_", "-") and _CHECKED.search(before) is None
        return named or (word.isupper() and not before[-1:].isalnum())
    return not small.startswith("auth")


def _looks_secret(before: str, word: str, value: str) -> bool:
    """Whether the value of a name that may mean anything is a secret. Keys are often hashes: they stay."""
    if value.startswith("/") or before[-1:].isalpha():
        return False
    if word.lower() == "key":
        return any(len(run) >= 20 and _is_mixed(run) for run in _RUN.findall(value))
    return word.lower() in ("token", "auth", "authorization") and _is_made_up(value)


def _is_secret(name: re.Match[str], before: str, sure: bool, value: str) -> bool:
    """Whether a value that stands behind a name must not be kept. `sure`: the name is that of a credential."""
    word, assigned = name["word"], name["assigned"]
    if not value or value.rstrip(")]}>.").lower() in _NO_VALUES or (assigned == ":" and _USER_OF_URL.search(before)):
        return False
    certain = sure and _may_be_value(word.lower(), value) and not (word == "PASS" and _is_checked(before, value))
    if assigned is not None or _OPTION.search(before):
        return (assigned is not None or value[0] != "-") and (certain or _looks_secret(before, word, value))
    named = word.isupper() or word.lower() in _PASSWORDS
    return certain and named and (_is_made_up(value) or _has_digits_and_letters(value))


def _may_be_value(word: str, value: str) -> bool:
    """Whether what stands behind such a word is no directory, count or word of prose."""
    if word == "pwd":
        return not value.startswith(("/", "~", ".", "$"))
    if word == "pass":
        return _COUNT.match(value) is None
    return not (word.startswith("credential") and value.isalpha())


def _is_checked(before: str, value: str) -> bool:
    """Whether a node is named behind `PASS` alone, as the results of health checks do."""
    return before[-1:] not in ("_", "-") and _HOST.fullmatch(value) is not None


def _has_digits_and_letters(value: str) -> bool:
    return len(value) >= 6 and value[0] != "/" and bool(re.search("[0-9]", value) and re.search("[A-Za-z]", value))


def _hide_named(text: str, hide: Hide) -> str:
    """Hide the values of what is named like a credential."""
    pieces: list[str] = []
    done = at = 0
    while (name := _NAMED.search(text, at)) is not None:
        at = name.end()
        before = text[max(0, name.start() - _LONGEST_NAME) : name.start()]
        sure = _is_credential(before, name["word"])
        # What is no secret may hold a name and its secret: it is looked through, and read only so far till then.
        begun = _VALUE.match(text, at, at + _TELLING) if sure or _RUN.search(text, at, at + _TELLING) else None
        if begun is not None and _is_secret(name, before, sure, begun["quoted"] or begun["plain"] or ""):
            value = _VALUE.match(text, at) or begun
            kind = "plain" if value["plain"] is not None else "quoted"
            pieces += (text[done : value.start(kind)], hide(value[kind]))
            done = at = value.end(kind)
    return "".join((*pieces, text[done:]))


def _always(_match: re.Match[str]) -> bool:
    return True


def _is_long_run(match: re.Match[str]) -> bool:
    """Hosts and packages may begin like a key; their names are words with short numbers."""
    return _is_made_up(match["value"], 20)


def _is_token_of_url(match: re.Match[str]) -> bool:
    """Whether it is more than a plain short user name."""
    user = match["value"]
    return len(user) > 12 and (_is_made_up(user) or re.search(r"[^A-Za-z._-]", user) is not None)


def _is_of_scheme(match: re.Match[str]) -> bool:
    """Whether no prose follows the word: names of methods of authentication are words like others."""
    value = match["value"]
    return _is_made_up(value) or (_has_digits_and_letters(value) and match["scheme"].lower() == "bearer")


def _is_of_wandb(match: re.Match[str]) -> bool:
    """Its keys look like git's hashes."""
    return "wandb" in match.string[: match.start("value")]


@dataclass(frozen=True)
class _Rule:
    """Hides the pattern's group `value` where the judge says so, and keeps the group `keep` before it."""

    pattern: re.Pattern[str]
    is_secret: Callable[[re.Match[str]], bool] = _always

    def applied(self, text: str, hide: Hide) -> str:
        return self.pattern.sub(
            lambda match: match["keep"] + hide(match["value"]) if self.is_secret(match) else match[0], text
        )


_PRIVATE_KEY = _Rule(
    re.compile(
        r"""(?x)(?P<keep>-----BEGIN\ [A-Z0-9 ]{0,40}+(?<=PRIVATE\ KEY)-----(?:\\{1,4}[nr]|\s)*+)
        (?P<value>(?:[^-]|-(?!----(?:END|BEGIN)))++(?=-----END)|(?=[A-Za-z0-9+/]{12})(?:\\{1,4}[nr]|[\sA-Za-z0-9+/=])++)"""
    )
)
_AUTHORIZATION = _Rule(
    re.compile(
        r"""(?ix)(?P<keep>(?<![A-Za-z])authorization["'\\]{0,6}\s{0,4}[=:]\s{0,4}[b"'\\]{0,6}
        (?:bearer|basic|token|negotiate|ntlm|apikey)\s{1,4})(?P<value>[^\s"',;]++)"""
    )
)
_COOKIE = _Rule(
    re.compile(r"""(?ix)(?P<keep>cookie["'\\]{0,6}\s{0,4}[=:]\s{0,4}["'\\]{0,6})(?P<value>[\w.-]{1,64}+=[^\n"']++)""")
)
_OF_FORM = (
    # user:password@ in a URL, with `/` and `@` in the password; not host:port/
    _Rule(
        re.compile(
            r"""(?x)(?P<keep>://[^\s:/@\[\]"'<>]*+:)(?!//|\d{1,5}(?:[/,?\#\s]|$))
            (?P<value>(?:(?!://)[^\s"'<>@])*+(?:@(?=[^\s"'<>@?\#,;]*+@)[^\s"'<>@?\#,;]*+)*+)(?=@)"""
        ),
        lambda match: match["value"] != "",
    ),
    _Rule(
        re.compile(r"""(?i)(?P<keep>https?://)(?P<value>[^\s:/@"'<>?#,]++)(?=:?@|:\*\*\*@)"""),
        _is_token_of_url,
    ),
    _Rule(
        re.compile(r"(?P<keep>\b(?P<scheme>[Bb]earer|[Bb]asic)\s{1,4})(?P<value>[A-Za-z0-9._~+/=-]{8,}+)"),
        _is_of_scheme,
    ),
    # query parameters of signed URLs
    _Rule(
        re.compile(
            r"""(?i)(?P<keep>[?&][A-Za-z0-9-]{0,20}(?:signature|token|sig|key|credential)=)(?P<value>[^&\s"']{4,}+)"""
        )
    ),
    _Rule(
        re.compile(
            r"""(?x)(?P<keep>hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/)
            (?P<value>[^\s"'<>*]++)"""
        )
    ),
    _Rule(
        re.compile(
            r"""(?x)(?P<keep>(?:login|key|file)(?:\s{1,4}--?[a-z-]{1,20}(?:=\S{1,100})?){0,3}["'\\\s=:(,]{1,8})
            (?P<value>[0-9a-f]{40})(?![A-Za-z0-9])"""
        ),
        _is_of_wandb,
    ),
    # AWS, GitHub, Hugging Face, Replicate, Groq, npm, Stripe, Databricks, and a Weights & Biases server's
    _Rule(
        re.compile(
            r"""(?x)(?P<keep>)(?<![A-Za-z0-9])(?P<value>(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])
            |gh[pousr]_[A-Za-z0-9]{16,}+|github_pat_[A-Za-z0-9_]{20,}+|(?:hf|r8|gsk|npm)_[A-Za-z0-9]{20,}+
            |[sr]k_(?:live|test)_[A-Za-z0-9]{8,}+|dapi[0-9a-f]{32}(?![A-Za-z0-9])|local-[0-9a-f]{40}(?![A-Za-z0-9]))"""
        )
    ),
    # Slack, GitLab, NVIDIA, Docker, Vault, Google, SendGrid, JWT (of which two parts are enough)
    _Rule(
        re.compile(
            r"""(?x)(?P<keep>)(?<![\w-])(?P<value>xox[abeprs]-[A-Za-z0-9-]{10,}+|xapp-[A-Za-z0-9-]{10,}+
            |gl(?:pat|dt|rt|cbt|ptt|soat|ft)-[\w-]{16,}+|nvapi-[\w-]{20,}+|dckr_[op]at_[\w-]{16,}+|hv[sb]\.[\w-]{16,}+
            |AIza[\w-]{30,}+|ya29\.[\w-]{10,}+|SG\.[\w-]{16,64}+\.[\w-]{16,}+
            |eyJ[\w-]{6,}+\.(?:eyJ[\w-]{6,}+(?:\.[\w-]++)*+|[\w-]{10,}+(?:\.[\w-]{5,}+)++))"""
        )
    ),
    # OpenAI and its like, xAI, PyPI, Weights & Biases
    _Rule(re.compile(r"(?P<keep>)(?<![\w-])(?P<value>(?:sk-|xai-|pypi-|wandb_v1_)[\w-]{20,}+)"), _is_long_run),
)
