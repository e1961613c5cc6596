"""What of the environment may be stored: an allow-list of prefixes, with secrets redacted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from omb_py.engine.rank import launcher_variables

REDACTED = "<redacted>"

PREFIXES: tuple[str, ...] = (
    *launcher_variables.PREFIXES,
    *(
        "MPICH_ MPIR_CVAR_ UCX_ UCC_ HCOLL_ SHARP_ FI_ CXI_ NCCL_ RCCL_ "
        "CUDA_ HIP_ HSA_ ROCR_ GLOO_ TORCH_NCCL_ OMP_ KMP_ GOMP_ MALLOC_"
    ).split(),
)
"""Environment variables that change how communication behaves, or say which job it was."""

NAMES: frozenset[str] = frozenset({"LD_PRELOAD", "LD_LIBRARY_PATH"})

SECRET_WORDS: tuple[str, ...] = ("TOKEN", "SECRET", "KEY", "PASS", "AUTH", "COOKIE", "JWT")
"""A variable with one of these in its name is named, but its value is not stored."""

# user:password@ before the first slash, and user:pass/word@ with a slash that should have been escaped
_CREDENTIALS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?:[^/?#\s]*|[^/?#\s:]*:\S*)@")
_ASSIGNMENT = re.compile(
    rf"(?P<name>[\w.-]*(?:{'|'.join(SECRET_WORDS)})[\w.-]*)(?P<sign>=|:\s+(?:Bearer\s+|Basic\s+)?)"
    r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s,;&\"']+)",
    re.IGNORECASE,
)


def is_allowed(name: str) -> bool:
    """Whether a variable of this name may be stored at all."""
    return name in NAMES or name.startswith(PREFIXES)


def is_secret(name: str) -> bool:
    """Whether the value behind this name is a secret."""
    upper = name.upper()
    return any(word in upper for word in SECRET_WORDS)


def redact_text(text: str) -> str:
    """The text without credentials in URLs and without the values of assignments to secret names.

    >>> redact_text("http://me:pw@proxy:3128 API_TOKEN=abc")
    'http://<redacted>@proxy:3128 API_TOKEN=<redacted>'
    """
    text = _CREDENTIALS.sub(lambda m: f"{m['scheme']}{REDACTED}@", text)
    return _ASSIGNMENT.sub(lambda m: f"{m['name']}{m['sign']}{REDACTED}", text)


def redact_words(words: Iterable[str]) -> list[str]:
    """A command line, redacted: also the word after an option whose name is secret (``--token abc``)."""
    out: list[str] = []
    hide = False
    for word in words:
        option = word.startswith("-")
        out.append(REDACTED if hide and not option else redact_text(word))
        hide = option and "=" not in word and is_secret(word)
    return out


def allowed_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that may be stored, sorted by name, secrets redacted."""
    return {
        name: REDACTED if is_secret(name) else redact_text(value)
        for name, value in sorted(environ.items())
        if is_allowed(name)
    }
