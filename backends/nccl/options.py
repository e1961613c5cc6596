"""Settings of NCCL's own (``--nccl K=V,…``): how its communicators are made and its calls issued.

Pure: the command line reads them, cells carry their text, the backend and
``engine.measuring.async_timing`` do what they say.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import Final

from omb_py.errors import UsageError, nearest
from omb_py.grammar.key_values import Key, KeyValues
from omb_py.grammar.values import parse_whole, parse_word

REGISTRATIONS: Final = ("none", "register", "window")
POLICIES: Final = ("default", "efficiency", "zero")
"""Policies in the order of their numbers, ``NCCL_CTA_POLICY_…``."""
PROTOCOLS: Final = ("ll", "ll128", "simple")
METHODS: Final = ("usual", "nccl-tests")
LOGS: Final = ("off", "tuning")
ALGORITHMS: Final = ("ring", "tree", "collnetdirect", "collnetchain", "nvls", "nvlstree", "pat")
"""Those of ``NCCL_ALGO``; of a newer version any name of letters and digits is passed on."""
MOST: Final = 64
"""``MAXCHANNELS`` of NCCL, the most CTAs of a communicator."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of ``--nccl``, with their defaults."""

    registration: str = "none"
    """``register``: buffers of ncclMemAlloc, ncclCommRegister; ``window``: ncclCommWindowRegister, symmetric."""
    cta_policy: str = ""
    """``ncclConfig_t.CTAPolicy``."""
    min_ctas: int = 0
    max_ctas: int = 0
    """``ncclConfig_t.minCTAs`` and ``maxCTAs``; 0: NCCL's choice."""
    algorithm: str = ""
    """One or several, with ``+``, after ``^`` all but these: for each call where NCCL has that, else by NCCL_ALGO."""
    protocol: str = ""
    """Protocol, set by NCCL_PROTO."""
    communicators: int = 1
    """The same call on so many communicators and streams at once."""
    aggregate: int = 1
    """Calls of one group."""
    replays: int = 1
    """How often a sample launches its graph (``--timing graph``)."""
    method: str = "usual"
    """``nccl-tests``: memory of ncclMemAlloc, and the sendrecv of few peers, where the library has them."""
    unaligned: int = 0
    """Elements of a buffer that stand before what a call is given, as ``-u`` of nccl-tests."""
    log: str = "off"
    """``tuning``: NCCL writes the algorithm of every call into a log, which is read."""

    @property
    def limit(self) -> int:
        """``maxCTAs`` as NCCL wants it: up to 2.30.7 it refuses a least number alone, above an undefined greatest."""
        return self.max_ctas or (MOST if self.min_ctas else 0)


def _word(setting: str, choices: tuple[str, ...]) -> Key:
    return Key(partial(parse_word, words=choices, error=f"unknown {setting} {{text!r}} in --nccl: {{nearest}}"))


def _number(name: str) -> Key:
    return Key(partial(parse_whole, least=1, most=MOST, error=name + " in --nccl is {least} to {most}, not {text!r}"))


def _algorithms(text: str) -> str:
    for word in text.removeprefix("^").split("+"):
        if word.startswith("^"):
            raise UsageError(f"^ stands in front of all algorithms in --nccl: ^{text.replace('^', '')}")
        if not word.isalnum():
            raise UsageError(f"unknown algorithm {word!r} in --nccl: {nearest(word, ALGORITHMS)}")
    return text


_GRAMMAR: Final = KeyValues(
    {
        "registration": _word("registration", REGISTRATIONS),
        "cta_policy": _word("CTA policy", POLICIES),
        "min_ctas": _number("min_ctas"),
        "max_ctas": _number("max_ctas"),
        "algorithm": Key(_algorithms),
        "protocol": _word("protocol", PROTOCOLS),
        "communicators": _number("communicators"),
        "aggregate": _number("aggregate"),
        "replays": Key(partial(parse_whole, least=1, error="replays in --nccl is {least} or more, not {text!r}")),
        "method": _word("method", METHODS),
        "unaligned": Key(partial(parse_whole, least=0, error="unaligned in --nccl is 0 or more, not {text!r}")),
        "log": _word("log", LOGS),
    },
    unknown="unknown setting {key!r} in --nccl: {nearest}",
    missing="setting {key} of --nccl has no value: write {key}=VALUE",
    repeated="setting {key} stands in --nccl twice",
    malformed="{error}",
)
KEYS: Final = tuple(_GRAMMAR.keys)


@cache
def settings_of(text: str) -> Settings:
    """The settings that a text gives. Raises UsageError with the nearest key or value.

    >>> settings_of("max_ctas=4, registration=window").max_ctas
    4
    """
    settings = Settings(**_GRAMMAR.read(text.lower()))
    if settings.min_ctas and settings.max_ctas and settings.min_ctas > settings.max_ctas:
        raise UsageError(f"min_ctas={settings.min_ctas} is above max_ctas={settings.max_ctas} in --nccl")
    if settings.communicators > 1 and settings.aggregate > 1:
        raise UsageError("--nccl takes communicators or aggregate, not both: leave one out")
    return settings


def changed(settings: Settings) -> dict[str, str]:
    """Key -> value of the settings that differ from their defaults."""
    return {f.name: str(v) for f in fields(settings) if (v := getattr(settings, f.name)) != f.default}


def measured_as(tool: str, text: str) -> str:
    """The same settings with the method of a tool that has one of its own, as a canonical text.

    >>> measured_as("nccl-tests", "max_ctas=4")
    'max_ctas=4,method=nccl-tests'
    """
    return _text_of(replace(settings_of(text), method=tool)) if tool in METHODS else text


def canonical_text(text: str) -> str:
    """The same settings always as the same text; empty where nothing is set."""
    return _text_of(settings_of(text))


def _text_of(settings: Settings) -> str:
    return ",".join(f"{key}={value}" for key, value in changed(settings).items())
