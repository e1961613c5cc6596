"""The compiled modules that ranks load, in one file of the user's cache (:mod:`.rank_start` reads it); so for commands.

Which ones these are a rank says itself, the first time that such ranks run. They stay in use while their sources stay
as they are; the parent looks at these once a launch, in place of every rank. Those of a command are what the first one
that measured had loaded.
"""

from __future__ import annotations

import json
import marshal
import os
import site
import sys
from collections.abc import Iterable
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from itertools import takewhile

from omb_py import __version__, user_cache
from omb_py.digests import sha256
from omb_py.orchestrate.running import rank_start
from omb_py.remembered import keep, recall

_PACKAGES = frozenset({"omb_py", "mpi4py", "click", *sys.stdlib_module_names})
"""Packages whose modules are kept."""
_HEAVY = frozenset({"numpy", "pandas", "pyarrow", "rich", "scipy"})
"""What one of these loads is not kept for commands: most need none of it."""
_COMMAND = "the command"
try:
    _HERE = os.getcwd()
except FileNotFoundError:  # it was removed
    _HERE = ""
_SEARCHED = tuple(dict.fromkeys("" if entry == _HERE else entry for entry in sys.path))
"""Where this process began to look for modules: elsewhere, as with another PYTHONPATH, the same name is another one."""


def rank_program() -> list[str]:
    """The command of a rank with this Python."""
    return [sys.executable, "-S", "-P", rank_start.__file__]


def question_of(*what: object) -> str:
    """The name of a set of modules: that of ranks which measure `what`."""
    python = sys.version, sys.flags.optimize, sys.prefix, _SEARCHED
    return json.dumps(["modules of ranks", __version__, *python, __file__, *what])


def rank_variables(question: str) -> dict[str, str]:
    """The variables by which ranks find modules; without the file's name where it is not known or no longer true."""
    user_base = site.getuserbase() if site.ENABLE_USER_SITE else ""
    lists = ([sys.prefix], site.PREFIXES, [user_base], [entry or _HERE for entry in sys.path])
    path = (2 * os.pathsep).join(map(os.pathsep.join, lists))
    answer = recall(question)
    kept = {rank_start.MODULES_VARIABLE: answer["file"]} if answer and user_cache.view(answer["file"]) else {}
    return {rank_start.PATH_VARIABLE: path, **kept}


def keep_modules(question: str, names: Iterable[str]) -> None:
    """Keep the modules with these names, of which ranks have told."""
    modules, codes, begin, sources = {}, [], 0, []
    for name in sorted(set(names)):
        if name.partition(".")[0] not in _PACKAGES or name == "__main__":
            continue
        try:
            spec = find_spec(name)
        except (ImportError, ValueError):  # a module that was made by hand
            continue
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or spec.origin is None:
            if name.startswith("omb_py."):
                return  # in this process something else loads modules, as pytest does
            continue
        codes.append(marshal.dumps(spec.loader.get_code(name)))
        end = begin + len(codes[-1])
        modules[name] = spec.origin, spec.cached, spec.submodule_search_locations is not None, begin, end
        begin = end
        sources.append(spec.origin)
    index = marshal.dumps(modules)
    content = b"".join([len(index).to_bytes(8, "big"), index, *codes])
    file = f"{sha256(content).hexdigest()}.modules"
    user_cache.save(file, content)
    keep(question, {"file": file}, sources)


def use_kept_modules() -> None:
    """Find modules of this command in the file that is kept for commands, where there is one and it is still true."""
    answer = recall(question_of(_COMMAND))
    if answer and (content := user_cache.view(answer["file"])):
        sys.meta_path.insert(0, rank_start.KeptModules(content))


def keep_own_modules() -> None:
    """Keep what this command has loaded, where it measured and found none in a file."""
    kept = any(isinstance(finder, rank_start.KeptModules) for finder in sys.meta_path)
    if not kept and "omb_py.orchestrate.running.run" in sys.modules:
        keep_modules(question_of(_COMMAND), takewhile(lambda name: name not in _HEAVY, list(sys.modules)))
