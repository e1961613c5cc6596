"""Times of iterations in plain arrays: a rank of the native binding loads no NumPy."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    # numbers that ranks combine element by element
    Values = TypeVar("Values", array[int], array[float], NDArray[np.float64])
else:  # to compile the names of types takes a rank a millisecond
    Values = TypeVar("Values")
Integers: TypeAlias = "array[int]"


class LapTimes:
    """Nanoseconds of each lap of each iteration, as generated code writes them: the laps of an iteration together."""

    def __init__(self, iterations: int, laps: int) -> None:
        self.width, self.laps = max(1, laps), laps
        self.content = array("q", bytes(8 * iterations * self.width))
        self.iterations = iterations

    def lap(self, number: int, first: int = 0) -> Integers:
        """The times of a lap from iteration `first` on."""
        return self.content[first * self.width + number :: self.width]

    def table(self) -> NDArray[np.int64]:
        """An array of shape (iterations, laps)."""
        import numpy as np

        return np.frombuffer(self.content, np.int64).reshape(self.iterations, self.width)[:, : self.laps]


def lap_of(samples: LapTimes | NDArray[np.int64], number: int, first: int = 0) -> Integers:
    """The times of a lap from iteration `first` on, of either kind of samples."""
    if isinstance(samples, LapTimes):
        return samples.lap(number, first)
    return array("q", samples[first:, number].astype("<i8").tobytes())


def address_of_array(values: array[int] | array[float]) -> int:
    """Where an array lies, for C; until it is made longer."""
    return values.buffer_info()[0]


def returned(values: Values, combined: NDArray[np.float64]) -> Values:
    """What a library has combined, as the kind of array that it was given."""
    return array(values.typecode, combined.tobytes()) if isinstance(values, array) else combined
