"""Generated code, MPI and what they share, in memory where one byte too far ends the process."""

from __future__ import annotations

import ctypes
import signal
import sys
import time

import pytest

from omb_py.engine.native.translate import Arg, Machine
from omb_py.engine.program.language import Repeat
from omb_py.engine.program.steps import RESIZED
from tests.support import guarded
from tests.support.every_step import TEXTS
from tests.support.machine import call, libc, run
from tests.support.machines.mpi import report, run_command

NOT_ON_MPI = {"matmul", "zero", *RESIZED}
"""Steps of a device, of a workload's computation, and of NCCL alone."""
OF_A_CHECK = {"flip"}
"""A byte is inverted only where --inject asks for it."""
IN_ANOTHER_FORM = {"psend", "precv", "answer"}
"""They become psend_init, precv_init and ianswer."""


@pytest.mark.slow
@pytest.mark.parametrize(("at_end", "offset"), [(True, 24), (False, -1)])
def test_one_byte_too_far_ends_the_process(at_end: bool, offset: int) -> None:
    code = (
        "import ctypes; from tests.support.guarded import allocate\n"
        f"memory = allocate(24, {at_end}); memory[:] = 1; print('inside', flush=True)\n"
        f"ctypes.memset(memory.ctypes.data + {offset}, 2, 1)"
    )
    done = run_command([sys.executable, "-c", code])
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "inside\n")


def test_a_byte_beside_it_on_its_own_page_is_counted() -> None:
    memory = guarded.allocate(24)
    before = guarded.overwritten()
    ctypes.memset(memory.ctypes.data - 3, 2, 2)
    assert guarded.overwritten() == before + 2
    del memory


@pytest.mark.parametrize("at_end", [True, False])
def test_generated_code_stays_inside(at_end: bool) -> None:
    """Loops, strides, samples and the tables themselves, without MPI: clock_gettime writes 16 bytes in each pass."""
    with guarded.guarded(at_end):
        memory = guarded.allocate(128, at_end)
        step = call(libc("clock_gettime"), time.CLOCK_MONOTONIC, Arg(int(memory.ctypes.data), stride=16))
        run(Machine(), [Repeat(8, (step,))], iterations=3)
    assert memory.view("int64")[::2].min() > 0 and not guarded.overwritten()


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.each_library
@pytest.mark.timeout(1000)
def test_every_step_and_size_class_on_real_ranks() -> None:
    found = report("tests.support.guarded", 2)
    assert (found["wrong"], found["overwritten"]) == ([], 0)
    assert not set(TEXTS) - set(found["steps"]) - NOT_ON_MPI - OF_A_CHECK - IN_ANOTHER_FORM
    assert {"psend_init", "precv_init", "ianswer"} <= set(found["steps"])


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("planted", guarded.PLANTED)
def test_a_mistake_on_real_ranks_is_found(planted: str) -> None:
    with pytest.raises(AssertionError, match=r"(?is)segmentation|signal 11|BAD TERMINATION"):
        report("tests.support.guarded", 2, planted)
