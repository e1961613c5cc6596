"""The tool interface of MPI through ctypes: its variables, and what it counts."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from omb_py.backends.mpi.start import standard_abi
from omb_py.errors import EnvironmentProblem, nearest
from omb_py.launchers.mpiexec_family import OPEN_MPI

VERBOSITIES: Final = tuple(
    f"{whom} {how}" for whom in ("user", "tuner", "developer") for how in ("basic", "detail", "all")
)
SCOPES: Final = ("constant", "readonly", "local", "group", "group_eq", "all", "all_eq")
KINDS: Final = (
    *("state", "level", "size", "percentage", "highwatermark", "lowwatermark", "counter", "aggregate", "timer"),
    "generic",
)
OBJECTS: Final = (
    *("", "communicator", "datatype", "error handler", "file", "group", "operation", "request", "window"),
    *("message", "info", "session"),
)
_WORDS: Final = (VERBOSITIES, SCOPES, KINDS, OBJECTS)
_FIRST: Final = {OPEN_MPI: (0, 0, 0, 0)}
"""First numbers of the four, as mpi.h of Open MPI 5.0 has them."""
_FIRST_OF_MPICH: Final = (221, 60438, 240, 9700)
"""mpi.h of MPICH 5.0; Intel MPI and others that descend from MPICH have the same."""
_STANDARD_VERBOSITIES: Final = (9, 10, 12, 17, 18, 20, 33, 34, 36)
"""Of MPI's standard ABI (MPI-5.0), where the other three count from 1."""
_TYPES: Final[dict[str, Any]] = {
    "INT": ctypes.c_int,
    "UNSIGNED": ctypes.c_uint,
    "LONG": ctypes.c_long,
    "LONG_LONG": ctypes.c_longlong,
    "UNSIGNED_LONG": ctypes.c_ulong,
    "UNSIGNED_LONG_LONG": ctypes.c_ulonglong,
    "COUNT": ctypes.c_longlong,
    "CHAR": ctypes.c_char,
    "DOUBLE": ctypes.c_double,
    "INT32_T": ctypes.c_int32,
    "INT64_T": ctypes.c_int64,
    "UINT32_T": ctypes.c_uint32,
    "UINT64_T": ctypes.c_uint64,
    "C_BOOL": ctypes.c_bool,
}
"""Type of a variable -> its C type (MPI-4.1 table 15.1, and C's sized integers and bool, which Open MPI uses)."""
_NAME_BYTES, _TEXT_BYTES = 1024, 1 << 16
_by = ctypes.byref


def numbering_of(vendor: str, standard: bool) -> list[dict[int, str]]:
    """Number -> word, of verbosities, scopes, kinds and objects.

    Args:
        standard: whether MPI is called by its standard ABI.
    """
    first = (0, 1, 1, 1) if standard else _FIRST.get(vendor, _FIRST_OF_MPICH)
    numbering = [dict(enumerate(words, number)) for number, words in zip(first, _WORDS, strict=True)]
    if standard:
        numbering[0] = dict(zip(_STANDARD_VERBOSITIES, VERBOSITIES, strict=True))
    return numbering


@dataclass(frozen=True, slots=True)
class Variable:
    """A control or performance variable, as MPI_T describes it."""

    index: int
    name: str
    type: str
    """Name of its datatype, without ``MPI_``."""
    description: str
    verbosity: str
    object: str
    """What it is bound to; empty: nothing."""
    scope: str = ""
    """Of control variables."""
    kind: str = ""
    """Of performance variables: their class."""
    continuous: bool = False
    """Of performance variables: it counts always, and cannot be started."""
    items: tuple[tuple[int, str], ...] = ()
    """Of an enumeration: numbers and names."""


class Interface:
    """MPI_T of this process, from MPI_T_init_thread to :meth:`close`.

    Raises:
        EnvironmentProblem: the library has no MPI_T, or refuses to begin it.
    """

    def __init__(self, mpi: ModuleType, vendor: str) -> None:
        self.mpi, self._library = mpi, ctypes.CDLL(mpi.__file__)
        self._vendor = vendor
        numbering = numbering_of(vendor, bool(standard_abi(mpi)))
        self.verbosities, self.scopes, self.kinds, self.objects = numbering
        self.handle_type = ctypes.c_void_p if mpi._sizeof(mpi.INT) == ctypes.sizeof(ctypes.c_void_p) else ctypes.c_uint
        self._type_names = {self._number(getattr(mpi, name)): name for name in reversed(_TYPES) if hasattr(mpi, name)}
        provided = ctypes.c_int()
        self.call("init_thread", 0, _by(provided))

    def _number(self, mpi_object: object) -> int:
        mask = (1 << (8 * ctypes.sizeof(self.handle_type))) - 1
        return int(self.mpi._handleof(mpi_object)) & mask

    def close(self) -> None:
        self.call("finalize")

    def call(self, name: str, *operands: object) -> None:
        try:
            function = getattr(self._library, f"MPI_T_{name}")
        except AttributeError:
            raise EnvironmentProblem(
                f"{self._vendor} has no MPI_T_{name}, so nobody can ask it for its variables: use a library that "
                "implements MPI-3.0 or newer with its tool interface"
            ) from None
        code = function(*operands)
        if code:
            raise EnvironmentProblem(f"MPI_T_{name} of {self._vendor} returned error {code}")

    def _count(self, of: str) -> int:
        number = ctypes.c_int()
        self.call(f"{of}_get_num", _by(number))
        return number.value

    def control_variables(self) -> Iterator[Variable]:
        """All control variables."""
        for index in range(self._count("cvar")):
            scope = ctypes.c_int()
            info = _Info(self, index)
            if self._is_there("cvar", index, *info.head(), *info.tail(), _by(scope)):
                yield info.variable(scope=_word(self.scopes, scope))

    def performance_variables(self) -> Iterator[Variable]:
        """All performance variables."""
        for index in range(self._count("pvar")):
            kind, readonly, continuous, atomic = (ctypes.c_int() for _ in range(4))
            more = (_by(readonly), _by(continuous), _by(atomic))
            info = _Info(self, index)
            if self._is_there("pvar", index, *info.head(_by(kind)), *info.tail(), *more):
                word = _word(self.kinds, kind)
                yield info.variable(kind=word, continuous=bool(continuous.value))

    def _is_there(self, of: str, index: int, *operands: object) -> bool:
        """Let the library describe a variable; False for one that it has taken back."""
        try:
            self.call(f"{of}_get_info", index, *operands)
        except EnvironmentProblem:
            return False
        return True

    def c_type(self, variable: Variable) -> Any:
        """The C type of a variable's values. Raises EnvironmentProblem where they are no numbers."""
        if variable.type not in _TYPES or variable.type == "CHAR":
            raise EnvironmentProblem(f"{variable.name} holds no numbers but {variable.type}: choose another variable")
        return _TYPES[variable.type]

    def categories(self) -> dict[str, str]:
        """Variable -> name of the first category that lists it."""
        names = {
            "cvars": {variable.index: variable.name for variable in self.control_variables()},
            "pvars": {variable.index: variable.name for variable in self.performance_variables()},
        }
        places: dict[str, str] = {}
        for index in range(self._count("category")):
            name, length = ctypes.create_string_buffer(_NAME_BYTES), ctypes.c_int(_NAME_BYTES)
            nothing = ctypes.c_int(0)
            counts = {"cvars": ctypes.c_int(), "pvars": ctypes.c_int(), "categories": ctypes.c_int()}
            self.call("category_get_info", index, name, _by(length), None, _by(nothing), *map(_by, counts.values()))
            for of, known in names.items():
                members = (ctypes.c_int * counts[of].value)()
                if counts[of].value:
                    self.call(f"category_get_{of}", index, counts[of], members)
                for member in members:
                    if member in known:
                        places.setdefault(known[member], _text(name))
        return places

    def value(self, variable: Variable) -> str:
        """The value of a control variable that is bound to no object, as it would be set; empty where unknown."""
        if variable.object or variable.type not in _TYPES:
            return ""
        handle, count = ctypes.c_void_p(), ctypes.c_int()
        self.call("cvar_handle_alloc", variable.index, None, _by(handle), _by(count))
        # a library may count the characters of a text without the zero at its end
        room = (_TYPES[variable.type] * (max(1, count.value) + 1))()
        self.call("cvar_read", handle, room)
        self.call("cvar_handle_free", _by(handle))
        if variable.type == "CHAR":
            return bytes(room).split(b"\0")[0].decode("utf-8", "replace")
        numbers = [dict(variable.items).get(int(n), str(n)) for n in room[: max(1, count.value)]]
        return ",".join("1" if n == "True" else "0" if n == "False" else n for n in numbers)


class _Info:
    def __init__(self, interface: Interface, index: int) -> None:
        self._interface, self._index = interface, index
        self._name, self._text = ctypes.create_string_buffer(_NAME_BYTES), ctypes.create_string_buffer(_TEXT_BYTES)
        self._name_length, self._text_length = ctypes.c_int(_NAME_BYTES), ctypes.c_int(_TEXT_BYTES)
        self._verbosity, self._object = ctypes.c_int(), ctypes.c_int()
        self._type, self._enumeration = interface.handle_type(), ctypes.c_void_p()

    def head(self, *between: object) -> tuple[object, ...]:
        return (
            *(self._name, _by(self._name_length), _by(self._verbosity), *between),
            *(_by(self._type), _by(self._enumeration)),
        )

    def tail(self) -> tuple[object, ...]:
        return self._text, _by(self._text_length), _by(self._object)

    def variable(self, scope: str = "", kind: str = "", continuous: bool = False) -> Variable:
        return Variable(
            self._index,
            _text(self._name),
            self._interface._type_names.get(self._type.value or 0, "unknown"),
            _text(self._text),
            _word(self._interface.verbosities, self._verbosity),
            _word(self._interface.objects, self._object),
            items=self._items(),
            scope=scope,
            kind=kind,
            continuous=continuous,
        )

    def _items(self) -> tuple[tuple[int, str], ...]:
        if not self._enumeration.value:
            return ()
        call, name, number = self._interface.call, ctypes.create_string_buffer(_NAME_BYTES), ctypes.c_int()
        length = ctypes.c_int(_NAME_BYTES)
        call("enum_get_info", self._enumeration, _by(number), name, _by(length))
        items = []
        for index in range(number.value):
            value, length = ctypes.c_int(), ctypes.c_int(_NAME_BYTES)
            call("enum_get_item", self._enumeration, index, _by(value), name, _by(length))
            items.append((value.value, _text(name)))
        return tuple(items)


def _text(buffer: ctypes.Array[ctypes.c_char]) -> str:
    try:
        return bytes(buffer.value).decode("utf-8")
    except UnicodeDecodeError:  # Intel MPI has its sign ® in Latin-1
        return bytes(buffer.value).decode("latin-1")


def _word(words: Mapping[int, str], number: ctypes.c_int) -> str:
    return words.get(number.value, str(number.value))


@dataclass(frozen=True, slots=True)
class _Open:
    """A variable with its handle and room for its values."""

    handle: ctypes.c_void_p
    values: ctypes.Array[Any]


class Counters:
    """A session of MPI_T with one handle for each variable.

    Raises:
        EnvironmentProblem: the library has no such variable now, or one that belongs to something else than the process
            or a communicator.
    """

    def __init__(self, mpi: ModuleType, vendor: str, names: Sequence[str], comm: object) -> None:
        self._interface = Interface(mpi, vendor)
        self._session = ctypes.c_void_p()
        self._interface.call("pvar_session_create", _by(self._session))
        # handles of Open MPI are pointers, those of MPICH numbers; MPI_T wants the address of the handle
        self._comm = self._interface.handle_type(mpi._handleof(comm))
        known = {variable.name: variable for variable in self._interface.performance_variables()}
        self._open = {name: self._open_variable(_find_variable(name, known, vendor)) for name in names}

    def _open_variable(self, variable: Variable) -> _Open:
        if variable.object not in ("", "communicator"):
            raise EnvironmentProblem(f"{variable.name} belongs to a {variable.object}, and --pvar reads none of it")
        handle, count = ctypes.c_void_p(), ctypes.c_int()
        of = _by(self._comm) if variable.object else None
        self._interface.call("pvar_handle_alloc", self._session, variable.index, of, _by(handle), _by(count))
        if not variable.continuous:
            self._interface.call("pvar_start", self._session, handle)
        return _Open(handle, (self._interface.c_type(variable) * max(1, count.value))())

    def read(self) -> Mapping[str, float]:
        """Each variable on this rank; of one with several values, as one for each peer, their sum."""
        out = {}
        for name, opened in self._open.items():
            self._interface.call("pvar_read", self._session, opened.handle, opened.values)
            out[name] = float(sum(opened.values))
        return out


def _find_variable(name: str, known: Mapping[str, Variable], vendor: str) -> Variable:
    if name in known:
        return known[name]
    if "_monitoring_" in name:  # Open MPI closes this component when nobody wants it
        raise EnvironmentProblem(f"{vendor} counts {name} with monitoring alone: set OMPI_MCA_pml_monitoring_enable=1")
    raise EnvironmentProblem(f"{vendor} has no performance variable {name!r} here: {nearest(name, known)}")
