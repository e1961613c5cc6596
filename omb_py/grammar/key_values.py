"""``KEY=VALUE,…`` texts, read by a table of their keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from omb_py.errors import UsageError, nearest


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a ``KEY=VALUE`` text."""

    read: Callable[[str], Any]
    """Value of a text; raises UsageError."""
    default: str | None = None
    """The text that is read where the key is not given; None: the key then has no value."""
    about: str = ""
    """Meaning of the value, for lists of keys."""
    form: str = ""
    """Example of a value, for error messages; where it is empty, the default is the example."""
    repeats: bool = False
    """It may be given several times; its value is then a tuple."""
    takes: frozenset[str] = frozenset()
    """Keys of a text within its value: ``model=custom:layers=2,hidden=64`` is one value of a key that takes both."""
    normalize: Callable[[str], str] | None = None
    """Rewrites the text before it is read, for instance a file name as the content of the file. Raises UsageError."""


@dataclass(frozen=True, slots=True)
class KeyValues:
    """The grammar of a ``KEY=VALUE`` text: its keys, and the wording of its error messages.

    The messages are templates with ``{key}`` and ``{form}``; `unknown` also has ``{nearest}``, `malformed` has
    ``{value}`` and ``{error}``, what the key's reader says.
    """

    keys: Mapping[str, Key]
    prefix: str = ""
    """Stands before every message."""
    unknown: str = "unknown setting {key!r}: {nearest}"
    missing: str = "{key} needs a value, as {key}={form}"
    repeated: str = "{key} is given twice"
    malformed: str = "{key}: {error}"
    meant: Mapping[str, str] = field(default_factory=dict)
    """Other words for a key -> the key."""

    def texts(self, text: str) -> dict[str, tuple[str, ...]]:
        """Split a text into its values by key, in the order of the text. Empty places between commas are ignored.

        Raises:
            UsageError: an unknown key (with the nearest), a key without a value, or a key given twice.
        """
        texts: dict[str, tuple[str, ...]] = {}
        for part in self._parts(text):
            name, equals, value = (word.strip() for word in part.partition("="))
            if name not in self.keys:
                raise self._error(self.unknown, key=name, nearest=nearest(self.meant.get(name, name), self.keys))
            key = self.keys[name]
            if not equals or not value:
                raise self._error(self.missing, key=name, form=_form(key))
            if name in texts and not key.repeats:
                raise self._error(self.repeated, key=name)
            texts[name] = (*texts.get(name, ()), key.normalize(value) if key.normalize else value)
        return texts

    def _parts(self, text: str) -> list[str]:
        """The settings in a text. A comma within a value that is a text of settings itself separates none."""
        parts: list[str] = []
        for part in filter(None, (part.strip() for part in text.split(","))):
            name, inside = part.partition("=")[0].strip(), parts[-1] if parts else ""
            outer, _, value = inside.partition("=")
            key = self.keys.get(outer.strip())
            given = {each.partition("=")[0].strip() for each in value.partition(":")[2].split(",")}
            if key and ":" in value and name in key.takes and name not in given:
                parts[-1] = f"{inside}{'' if inside.endswith(':') else ','}{part}"
            else:
                parts.append(part)
        return parts

    def values(self, texts: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
        """Read the result of :meth:`texts`: the values in the order of the keys, with the defaults of absent keys.

        Raises:
            UsageError: a value that its key's reader refuses.
        """
        values: dict[str, object] = {}
        for name, key in self.keys.items():
            if name in texts:
                read = tuple(self._value(name, key, text) for text in texts[name])
                values[name] = read if key.repeats else read[0]
            elif key.default is not None:
                values[name] = self._value(name, key, key.default)
        return values

    def read(self, text: str) -> dict[str, Any]:
        """Read a text: value by key. Raises UsageError as :meth:`texts` and :meth:`values`."""
        return self.values(self.texts(text))

    def _value(self, name: str, key: Key, text: str) -> Any:
        try:
            return key.read(text)
        except UsageError as error:
            raise self._error(self.malformed, key=name, value=text, form=_form(key), error=error) from None

    def _error(self, template: str, **words: object) -> UsageError:
        return UsageError(self.prefix + template.format(**words))


def _form(key: Key) -> str:
    return key.form or key.default or "…"
