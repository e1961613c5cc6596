"""``tuned.env`` for a shell and a modulefile for Lmod: the variables of a tuned library."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Final

from omb_py.results.tune.library_files import LibraryFacts, LibraryFiles, head
from omb_py.results.tune.rules import RuleTable

ENVIRONMENT, MODULE = "tuned.env", "tuned.lua"
_VARIABLES_ALONE: Final = "its variables hold for all sizes and ranks"


def by_variables(table: RuleTable, facts: LibraryFacts, folder: PurePath) -> LibraryFiles:
    """The variables of a library that reads no sizes: those of the one setting of all rules.

    Where the rules have several settings no variables hold for all, so each setting gets a file of its own.
    """
    settings = dict.fromkeys(rule.setting for rule in table.rules)
    if len(settings) == 1:
        return LibraryFiles({}, table.rules[0].setting.variables)
    texts = {}
    for setting in settings:
        rules = [rule for rule in table.rules if rule.setting == setting]
        name = re.sub(r"[^A-Za-z0-9]+", "-", setting.name).strip("-") or "setting"
        texts[f"tuned-{name}.env"] = _shell(head(replace(table, rules=tuple(rules))), setting.variables)
    why = f"{_VARIABLES_ALONE}, so each setting has a file of its own"
    return LibraryFiles(texts, (), tuple((rule, why) for rule in table.rules))


def with_environment(files: LibraryFiles, table: RuleTable) -> LibraryFiles:
    """The same with ``tuned.env`` and ``tuned.lua``, where there are variables."""
    if not files.variables:
        return files
    texts = {
        **files.texts,
        ENVIRONMENT: _shell(head(table), files.variables),
        MODULE: head(table, "--") + "".join(f"setenv({_lua(n)}, {_lua(v)})\n" for n, v in files.variables),
    }
    return replace(files, texts=texts)


def _shell(comment: str, variables: Sequence[tuple[str, str]]) -> str:
    return comment + "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables)


def _lua(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a text of Lua has the same escapes for what a path may hold
