"""The program of a rank that omb-py starts: ``python -S -P rank_start.py``. It finds modules without looking for them.

The parent says where packages lie (:data:`PATH_VARIABLE`), so Python reads no ``.pth`` file, and it names a file of the
user's cache with the compiled modules that such ranks load (:mod:`.rank_modules`): one file in place of a hundred. What
is not there is imported as ever. This module needs nothing but what is part of the interpreter.
"""

import gc
import os
import sys
from _frozen_importlib import ModuleSpec  # importlib.machinery would be looked for
from _frozen_importlib_external import SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType

PATH_VARIABLE = "OMB_PY_PATH"
"""The parent's ``sys.prefix``, ``site.PREFIXES``, ``site.USER_BASE`` where it is used, and ``sys.path``: lists like
PATH, with two separators between them."""
MODULES_VARIABLE = "OMB_PY_MODULES"
"""Name of the file in the user's cache."""
FEWER_COLLECTIONS = 50_000
"""New objects after which garbage is looked for: a start makes many, and next to no garbage."""
_LATE = frozenset({"bz2", "inspect", "ipaddress", "locale", "lzma"})
"""Modules that others import and hardly use: a kept one runs when its first name is asked for. :mod:`dataclasses` needs
``inspect`` for classes without a docstring alone, and it brings six others; ``subprocess`` needs ``locale`` to warn,
``shutil`` the compressions for archives, and ``urllib.parse`` needs ``ipaddress`` for brackets."""


class KeptLoader(SourceFileLoader):
    """Loads a module from code that was compiled before. To all who ask it is the loader of the source."""

    def __init__(self, name: str, source: str, code: memoryview) -> None:
        super().__init__(name, source)
        self._code = code

    def get_code(self, fullname: str) -> "CodeType":
        """The module's code, without a look at its files."""
        import marshal

        code: CodeType = marshal.loads(self._code)
        return code

    def exec_module(self, module: "ModuleType") -> None:
        """Run the module, or let it wait for its first use."""
        if module.__name__ not in _LATE:
            super().exec_module(module)
            return

        def run_first(name: str) -> object:
            if vars(module).pop("__getattr__", None):
                super(KeptLoader, self).exec_module(module)
            return getattr(module, name)

        vars(module)["__getattr__"] = run_first


class KeptModules:
    """Finds modules that lie in one file: an index, behind its length in eight bytes, and their compiled code."""

    def __init__(self, content: memoryview) -> None:
        import marshal

        end = 8 + int.from_bytes(content[:8], "big")
        self._modules: dict[str, tuple[str, str, bool, int, int]] = marshal.loads(content[8:end])
        """Name -> (source, its .pyc, whether it is a package, where its code begins, where it ends)."""
        self._code = content[end:]

    def find_spec(self, name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
        """The specification of a module; None where it is not in the file."""
        if name not in self._modules:
            return None
        source, cached, is_package, begin, end = self._modules[name]
        loader = KeptLoader(name, source, self._code[begin:end])
        spec = ModuleSpec(name, loader, origin=source, is_package=is_package)
        if is_package:
            spec.submodule_search_locations = [os.path.dirname(source)]
        spec.has_location, spec.cached = True, cached
        return spec


_OF_PYTHON = frozenset({*sys.stdlib_module_names, "org"})
"""Names of which Python's own modules look for those of other platforms; ``org`` is Jython's."""


class SiteFinder:
    """Looks for a module again after the files of ``site`` were read: packages may be found by their hooks alone."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> "ModuleSpec | None":
        """What is found then; asked last, and once."""
        if path is not None or self not in sys.meta_path or name in _OF_PYTHON:
            return None
        sys.meta_path.remove(self)
        import site
        from importlib.util import find_spec

        site.main()
        return find_spec(name)


def find_modules(environ: "os._Environ[str]") -> None:
    """Set where modules are found, as the parent has said."""
    if PATH_VARIABLE in environ:
        import site  # only to say what the parent's says: mpi4py looks for libraries where it points

        prefix, prefixes, user_base, path = environ[PATH_VARIABLE].split(2 * os.pathsep)
        sys.prefix = sys.exec_prefix = prefix
        site.PREFIXES[:] = prefixes.split(os.pathsep)
        site.ENABLE_USER_SITE, site.USER_BASE = bool(user_base), user_base or None
        sys.path[:] = dict.fromkeys((*path.split(os.pathsep), *sys.path))
        sys.meta_path.append(SiteFinder())
    name = environ.get(MODULES_VARIABLE)
    if name:
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        loader = SourceFileLoader("omb_py.user_cache", os.path.join(package, "user_cache.py"))
        cache = type(sys)(loader.name)
        exec(loader.get_code(loader.name) or "", vars(cache))
        if content := cache.view(name):
            sys.meta_path.insert(0, KeptModules(content))


if __name__ == "__main__":
    gc.set_threshold(FEWER_COLLECTIONS)
    find_modules(os.environ)
    from omb_py.class_code import install

    install("rank")
    from omb_py.orchestrate.running.rank_process import main
    from omb_py.process_end import end_process

    end_process(main())
