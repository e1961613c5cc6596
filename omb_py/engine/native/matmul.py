"""Matrix products between calls: the step ``matmul`` for each kind of loop, and its floating point operations.

All is float32 and done by the rank's own BLAS: NumPy's, which the native binding calls by its address, or PyTorch's
where that does the calls or holds the buffers.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from omb_py.engine.measuring.host_memory import ProgramMemory, load_torch
from omb_py.engine.program.language import Program, Region, Step, walk
from omb_py.engine.program.steps import MATMUL, MATRICES
from omb_py.errors import EnvironmentProblem

if TYPE_CHECKING:  # each kind of loop has one of the two
    from omb_py.engine.native.translate import NativeCall
    from omb_py.engine.python_loop.loop import Names

OPERANDS: Final = ("left", "right", "out")
"""Operands of a step ``matmul``, in the order of the buffers :data:`~omb_py.engine.program.steps.MATRICES`."""
_CORE: Final = ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath")
_SGEMM: Final = ("scipy_cblas_sgemm64_", "scipy_cblas_sgemm", "cblas_sgemm64_", "cblas_sgemm")
"""Names of one function: of the OpenBLAS in NumPy's wheels, of older ones, of everybody else's BLAS."""
_NUMBERS: Final = np.arange(1, 1022, dtype=np.float32) / np.float32(1024)
"""Not zeros, at which some processors draw less power, nor so large that a sum overflows."""
Floats = NDArray[np.float32]


def flop(step: Step) -> int:
    """Floating point operations of a step: 2·rows·side² of a matrix product, 0 of all others."""
    return 2 * int(step["rows"]) * int(step["side"]) ** 2 if step.op == MATMUL else 0


def flop_of(program: Program) -> int:
    """Floating point operations of one iteration of each of a program's stages."""
    if not any(buffer.name in MATRICES for buffer in program.buffers):
        return 0
    nodes = (node for stage in program.stages for node, _ in walk(stage.variants[0]))
    return sum(flop(node) for node in nodes if isinstance(node, Step))


def fill(memory: ProgramMemory, step: Step) -> None:
    """Put 1/1024, 2/1024, … 1021/1024 again and again into the matrices that a step multiplies, unless they hold it."""
    for name in OPERANDS[:2]:
        region: Region = step[name]
        elements = memory.view(region.buffer, region.nbytes).view(np.float32)
        if elements[-1] == 0:  # new memory holds zeros
            even = len(elements) // len(_NUMBERS) * len(_NUMBERS)
            elements[:even].reshape(-1, len(_NUMBERS))[:] = _NUMBERS
            elements[even:] = _NUMBERS[: len(elements) - even]


def matrices(step: Step, buffers: Mapping[str, NDArray[np.uint8]]) -> list[Floats]:
    """The matrices of a step: (rows, side), (side, side), and the result (rows, side).

    Args:
        step: the product.
        buffers: the bytes of each matrix, by the name of its operand.
    """
    rows, side = step["rows"], step["side"]
    shapes = (rows, side), (side, side), (rows, side)
    return [
        buffers[name][: 4 * n * m].view(np.float32).reshape(n, m) for name, (n, m) in zip(OPERANDS, shapes, strict=True)
    ]


class Products:
    """The products of a flat loop: one bound call for each shape.

    Args:
        memory: where the buffers lie.
        torch: the product is PyTorch's wherever they lie.
    """

    def __init__(self, memory: ProgramMemory, torch: bool = False) -> None:
        self._memory, self._torch = memory, torch or memory.kind == "torch"
        self._calls: dict[tuple[int, int], Callable[[], object]] = {}

    def text(self, step: Step, names: Names) -> str:
        key = step["rows"], step["side"]
        if key not in self._calls:
            fill(self._memory, step)
            bytes_of = {name: self._memory.view(step[name].buffer, step[name].nbytes) for name in OPERANDS}
            left, right, out = matrices(step, bytes_of)
            if self._torch:
                torch = load_torch()
                tensors = [torch.from_numpy(matrix) for matrix in (left, right, out)]
                self._calls[key] = partial(torch.mm, tensors[0], tensors[1], out=tensors[2])
            else:
                self._calls[key] = partial(np.matmul, left, right, out=out)
        return f"{names.bind(self._calls[key], MATMUL)}()"


@cache
def sgemm() -> int:
    """Address of cblas_sgemm in the BLAS that NumPy is linked with. Raises EnvironmentProblem where it has none."""
    loaded = (sys.modules.get(name) for name in _CORE)
    files = [str(module.__file__) for module in loaded if module is not None and module.__file__]
    for file in files:
        library = ctypes.CDLL(file)  # a symbol is looked for in what the module is linked with, too
        for name in _SGEMM:
            if hasattr(library, name):
                return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    raise EnvironmentProblem(
        f"compute=matmul: NumPy {np.__version__} here is linked with no BLAS that has cblas_sgemm, which the native "
        "binding calls: use --binding mpi4py, or a NumPy from PyPI"
    )


def call(step: Step, memory: ProgramMemory) -> NativeCall:
    """The call of BLAS for generated code: its operands are rows, side and the addresses of the three matrices."""
    from omb_py.engine.native.opcodes import MATMUL as BY_BLAS  # only the native binding needs these two
    from omb_py.engine.native.translate import Arg, NativeCall

    fill(memory, step)
    addresses = (memory.address(step[name].buffer) + step[name].offset for name in OPERANDS)
    return NativeCall(sgemm(), tuple(map(Arg, (step["rows"], step["side"], *addresses))), BY_BLAS)


def multiply_at(left: int, right: int, out: int, rows: int, side: int) -> None:
    left_matrix, right_matrix, product = (
        np.ctypeslib.as_array((ctypes.c_float * (n * side)).from_address(address)).reshape(n, side)
        for address, n in ((left, rows), (right, side), (out, rows))
    )
    np.matmul(left_matrix, right_matrix, out=product)
