"""Select the environment variables that may be stored, by an allow-list of prefixes, and redact secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

REDACTED = "<redacted>"

_OF_LIBRARIES = tuple(
    (
        "MPICH_ MPIR_CVAR_ UCX_ UCC_ HCOLL_ SHARP_ FI_ CXI_ NCCL_ RCCL_ CCL_ "
        "CUDA_ HIP_ HSA_ ROCR_ GLOO_ TORCH_NCCL_ OMP_ KMP_ GOMP_ MALLOC_"
    ).split()
)

NAMES: frozenset[str] = frozenset({"LD_PRELOAD", "LD_LIBRARY_PATH"})

SECRET_WORDS: tuple[str, ...] = ("TOKEN", "SECRET", "KEY", "PASS", "PWD", "AUTH", "CRED", "COOKIE", "JWT")
"""The value of a variable with one of these words in its name is not stored; its name is."""

_SUSPECT = rf"(?i)@|bearer|basic|{'|'.join(SECRET_WORDS)}"
"""What a text has where a pattern below fits. Most have none of it, and a start then compiles one in place of five."""
# user:password@ before the first slash, and user:pass/word@ with a slash that should have been escaped
_CREDENTIALS = r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)(?:[^/?#\s]*|[^/?#\s:]*:\S*)@"
_NO_SCHEME = r"(?<![\w/:.@-])(?P<user>[\w.-]+):[^\s@/:]+@(?=[\w.-]+)"
_OPTION = rf"(?i)(?P<option>(?<!\S)--?[\w-]*(?:{'|'.join(SECRET_WORDS)})[\w-]*\s+)(?!-)\S+"
_BEARER = r"(?i)(?P<kind>\b(?:Bearer|Basic)\s+)(?!<redacted>)\S+"
_ASSIGNMENT = (
    rf"(?i)(?<![\w.-])(?P<name>[\w.-]*(?:{'|'.join(SECRET_WORDS)})[\w.-]*)(?P<sign>=|:\s+(?:Bearer\s+|Basic\s+)?)"
    r"(?P<value>\"[^\"]*\"|'[^']*'|[^\s,;&\"']+)"
)


UNPUBLISHED: frozenset[str] = frozenset({"kernel_command_line"})
"""Facts that the store keeps, since they change how a launch behaves, and no page shows: they name disks and hosts."""


def published(facts: object) -> Any:
    """Facts of a provenance, at any depth, without those that are :data:`UNPUBLISHED`."""
    if isinstance(facts, Mapping):
        return {name: published(value) for name, value in facts.items() if name not in UNPUBLISHED}
    return [published(value) for value in facts] if isinstance(facts, (list, tuple)) else facts


@cache
def stored_prefixes() -> tuple[str, ...]:
    """Prefixes of environment variables that change how communication behaves or identify the job."""
    from omb_py.launchers.registry import prefixes  # a rank is told them instead

    return (*prefixes(), *_OF_LIBRARIES)


def is_allowed(name: str, prefixes: tuple[str, ...] = ()) -> bool:
    """Whether a variable with this name may be stored; `prefixes` are :func:`stored_prefixes` where they are known."""
    return name in NAMES or name.startswith(prefixes or stored_prefixes())


def is_secret(name: str) -> bool:
    """Whether the value of a variable or option with this name must not be stored."""
    upper = name.upper()
    return any(word in upper for word in SECRET_WORDS)


def redact_text(text: str) -> str:
    """Replace credentials in URLs and the values assigned to secret names.

    >>> redact_text("http://me:pw@proxy:3128 API_TOKEN=abc")
    'http://<redacted>@proxy:3128 API_TOKEN=<redacted>'
    """
    if not re.search(_SUSPECT, text):
        return text
    text = re.sub(_CREDENTIALS, lambda m: f"{m['scheme']}{REDACTED}@", text)
    text = re.sub(_NO_SCHEME, lambda m: f"{m['user']}:{REDACTED}@", text)
    text = re.sub(_OPTION, lambda m: f"{m['option']}{REDACTED}", text)
    text = re.sub(_BEARER, lambda m: f"{m['kind']}{REDACTED}", text)
    return re.sub(_ASSIGNMENT, lambda m: f"{m['name']}{m['sign']}{REDACTED}", text)


def redact_words(words: Iterable[str]) -> list[str]:
    """Redact a command line, including the word after an option with a secret name (``--token abc``)."""
    out: list[str] = []
    hide = False
    for word in words:
        option = word.startswith("-")
        out.append(REDACTED if hide and not option else redact_text(word))
        hide = option and "=" not in word and is_secret(word)
    return out


def allowed_environment(environ: Mapping[str, str], prefixes: tuple[str, ...] = ()) -> dict[str, str]:
    """The variables that may be stored, sorted by name, with secrets redacted."""
    return {
        name: REDACTED if is_secret(name) else redact_text(value)
        for name, value in sorted(environ.items())
        if is_allowed(name, prefixes)
    }
