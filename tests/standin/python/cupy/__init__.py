"""A stand-in for CuPy where there is no GPU: what the bindings use of it, over the stand-in libnccl.

Signatures as in CuPy 14. For PYTHONPATH of test processes only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__version__ = "14.2.0"


class ndarray:
    """What an array over device memory tells of itself; its bytes are the device's."""

    def __init__(self, shape: tuple[int, ...], dtype: Any = float, memptr: Any = None) -> None:
        self.shape, self.dtype, self.data = shape, np.dtype(dtype), memptr
        self.size = int(np.prod(shape))
        self.nbytes = self.size * self.dtype.itemsize
        if memptr is not None and memptr.mem.size < self.nbytes:
            raise ValueError("the array is larger than its memory")
