"""A stand-in for ROCm's package amdsmi: AMD GPUs that are not there.

Names, operands and keys are those of the real package, which ``amd_smi.json`` records from its source: a test compares
both. ``python -m tests.support.machines.amd_smi FOLDER`` writes the record again from an unpacked wheel of amdsmi.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_name("amd_smi.json")
FUNCTIONS = (
    "amdsmi_init amdsmi_shut_down amdsmi_get_processor_handles amdsmi_get_gpu_asic_info amdsmi_get_gpu_device_bdf "
    "amdsmi_get_energy_count amdsmi_get_violation_status amdsmi_get_clock_info"
).split()
RESOLUTION_UJ = 15.25
"""µJ of a unit of the counter."""


class AmdSmiException(Exception):
    """As the package's."""


class AmdSmiInitFlags(IntEnum):
    """As the package's."""

    INIT_AMD_GPUS = 2


class AmdSmiClkType(IntEnum):
    """As the package's, in part."""

    SYS = 0
    GFX = 0  # an alias: AMDSMI_CLK_TYPE_GFX is AMDSMI_CLK_TYPE_SYS


@dataclass
class StandInAmdGpu:
    """A GPU, as tests describe it."""

    serial: str = "a1b2c3d4e5f60718"
    bdf: str = "0000:c1:00.0"
    counter: int | None = 0
    """Units of energy; None: the GPU does not count."""
    violations: dict[str, int | str] | None = None
    """None: the GPU does not say."""
    clock_mhz: int | str = 2100


@dataclass
class StandInAmdSmi:
    """The module ``amdsmi`` on a machine with these GPUs."""

    gpus: Sequence[StandInAmdGpu]
    driver: bool = True
    users: int = 0
    AmdSmiException: type[Exception] = field(default=AmdSmiException)
    AmdSmiClkType: type[IntEnum] = field(default=AmdSmiClkType)

    def amdsmi_init(self, flag: AmdSmiInitFlags = AmdSmiInitFlags.INIT_AMD_GPUS) -> None:
        if not self.driver:
            raise AmdSmiException("AMDSMI_STATUS_DRIVER_NOT_LOADED")
        self.users += 1

    def amdsmi_shut_down(self) -> None:
        self._check()
        self.users -= 1

    def amdsmi_get_processor_handles(self) -> list[StandInAmdGpu]:
        self._check()
        return list(self.gpus)

    def amdsmi_get_gpu_asic_info(self, processor_handle: StandInAmdGpu) -> dict[str, Any]:
        self._check(processor_handle)
        return {"asic_serial": f"0x{processor_handle.serial.upper()}"}

    def amdsmi_get_gpu_device_bdf(self, processor_handle: StandInAmdGpu) -> str:
        self._check(processor_handle)
        return processor_handle.bdf

    def amdsmi_get_energy_count(self, processor_handle: StandInAmdGpu) -> dict[str, Any]:
        self._check(processor_handle)
        if processor_handle.counter is None:
            raise AmdSmiException("AMDSMI_STATUS_NOT_SUPPORTED")
        count = processor_handle.counter
        return {"energy_accumulator": count, "counter_resolution": RESOLUTION_UJ, "timestamp": 1}

    def amdsmi_get_violation_status(self, processor_handle: StandInAmdGpu) -> dict[str, Any]:
        self._check(processor_handle)
        if processor_handle.violations is None:
            raise AmdSmiException("AMDSMI_STATUS_NOT_SUPPORTED")
        unknown = {*processor_handle.violations} - {*json.loads(RECORD.read_text())["amdsmi_get_violation_status"][1]}
        assert not unknown, unknown
        return dict(processor_handle.violations)

    def amdsmi_get_clock_info(self, processor_handle: StandInAmdGpu, clock_type: AmdSmiClkType) -> dict[str, Any]:
        self._check(processor_handle)
        assert isinstance(clock_type, AmdSmiClkType)
        return {"clk": processor_handle.clock_mhz}

    def _check(self, handle: Any = None) -> None:
        if not self.users:
            raise AmdSmiException("AMDSMI_STATUS_NOT_INIT")
        assert handle is None or isinstance(handle, StandInAmdGpu)


def own() -> dict[str, list[str]]:
    """The stand-in's functions -> names of their operands."""
    return {name: list(inspect.signature(getattr(StandInAmdSmi, name)).parameters)[1:] for name in FUNCTIONS}


def recorded(source: str) -> dict[str, tuple[list[str], list[str]]]:
    """Of each function in the package's source: names of its operands, and the keys of the dicts that it makes."""
    facts = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name in FUNCTIONS:
            dicts = [part for part in ast.walk(node) if isinstance(part, ast.Dict)]
            keys = [str(key.value) for each in dicts for key in each.keys if isinstance(key, ast.Constant)]
            facts[node.name] = ([argument.arg for argument in node.args.args], keys)
    return facts


if __name__ == "__main__":
    text = (Path(sys.argv[1]) / "amdsmi" / "amdsmi_interface.py").read_text()
    RECORD.write_text(json.dumps(recorded(text), indent=1) + "\n")
