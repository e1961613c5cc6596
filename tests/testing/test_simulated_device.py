"""The simulated device is asynchronous: what does not wait gets wrong data."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Iterator

import numpy as np
import pytest

from omb_py.errors import EnvironmentProblem
from omb_py.testing.simulated_device import SimulatedDevice


@pytest.fixture
def device() -> Iterator[SimulatedDevice]:
    simulated = SimulatedDevice(delay_us=math.inf)  # however busy the machine is, nothing begins before a synchronise
    yield simulated
    simulated.close()


def test_work_happens_later_and_in_order(device: SimulatedDevice) -> None:
    there, host = device.allocate(8), np.zeros(8, np.uint8)
    device.call("fill", there, 7, 8, device.stream)
    device.call("copy_out", host.ctypes.data, there, 8, device.stream)
    assert host.sum() == 0 and device.busy(), "nothing has happened when the call returns"
    device.call("synchronise", device.stream)
    assert (host == 7).all() and not device.busy()


def test_new_memory_holds_no_zeros_that_could_be_taken_for_a_result(device: SimulatedDevice) -> None:
    host = np.zeros(4, np.uint8)
    device.call("copy_out", host.ctypes.data, device.allocate(4), 4, device.stream)
    device.call("synchronise", device.stream)
    assert host.any()


def test_events_are_read_only_after_they_happened(device: SimulatedDevice) -> None:
    first, last = device.event(), device.event()
    device.call("record", first, device.stream)
    device.call("record", last, device.stream)
    with pytest.raises(EnvironmentProblem, match="a synchronise is missing"):
        device.elapsed_ns(first, last)
    device.call("synchronise", device.stream)
    assert device.elapsed_ns(first, last) >= 0


def test_a_graph_runs_only_when_it_is_launched_and_as_often(device: SimulatedDevice) -> None:
    there, host, graph = device.allocate(1), np.zeros(1, np.uint8), np.zeros(2, np.int64)
    device.call("begin_capture", device.stream, 1)
    device.call("fill", there, 5, 1, device.stream)
    device.call("copy_out", host.ctypes.data, there, 1, device.stream)
    with pytest.raises(EnvironmentProblem, match="captured"):
        device.call("synchronise", device.stream)
    device.call("end_capture", device.stream, graph.ctypes.data)
    device.call("instantiate", graph.ctypes.data + 8, int(graph[0]), 0)
    device.call("synchronise", device.stream)
    assert host[0] == 0
    for _ in range(2):
        host[0] = 0
        device.call("launch", int(graph[1]), device.stream)
        device.call("synchronise", device.stream)
        assert host[0] == 5


@pytest.mark.parametrize("first", ["destroy_graph", "destroy_executable"])
def test_what_a_graph_retains_is_let_go_with_its_last_handle(device: SimulatedDevice, first: str) -> None:
    graph, gone = np.zeros(2, np.int64), []
    told = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(gone.append)
    where = ctypes.cast(told, ctypes.c_void_p).value or 0
    assert device._retain(device.stream, where, 7) == 0, "nothing is captured"
    device.call("begin_capture", device.stream, 1)
    assert device._retain(device.stream, where, 7) == 1
    device.call("end_capture", device.stream, graph.ctypes.data)
    device.call("instantiate", graph.ctypes.data + 8, int(graph[0]), 0)
    handle = {"destroy_graph": int(graph[0]), "destroy_executable": int(graph[1])}
    for number, function in enumerate(sorted(handle, key=lambda name: name != first)):
        assert gone == []
        device.call(function, handle[function])
        with pytest.raises(EnvironmentProblem, match="destroyed, or never made"):
            device.call(function, handle[function])
        assert gone == [7] * number
    with pytest.raises(EnvironmentProblem, match="destroyed, or never made"):
        device.call("launch", int(graph[1]), device.stream)


def test_a_stream_waits_at_a_gate() -> None:
    device = SimulatedDevice(delay_us=0)
    word, event = device.allocate_mapped(4), device.event()
    device.call("store", word, 0)
    device.call("wait_value", device.stream, word, 1, 0, 0xFFFFFFFF)
    device.call("record", event, device.stream)
    time.sleep(0.04)
    assert device.busy()
    device.call("store", word, 1)
    device.call("synchronise", device.stream)
    assert device.elapsed_ns(event, event) == 0
    device.close()


def test_what_goes_wrong_on_a_stream_is_said_when_it_is_waited_for(device: SimulatedDevice) -> None:
    device._streams[0].put(lambda: 1 // 0)
    with pytest.raises(EnvironmentProblem, match="ZeroDivisionError"):
        device.call("synchronise", device.stream)


def test_it_has_an_end(device: SimulatedDevice) -> None:
    with pytest.raises(EnvironmentProblem, match="smaller -m"):
        device.allocate(1 << 40)
    with pytest.raises(EnvironmentProblem, match="no stream 9"):
        device.call("synchronise", 9)


def test_what_waits_without_end_begins_when_it_is_waited_for_on_every_stream() -> None:
    device = SimulatedDevice(delay_us=math.inf)
    there, host, other = device.allocate(8), np.zeros(8, np.uint8), device.new_stream()
    device.call("fill", there, 7, 8, device.stream)
    device.call("copy_out", host.ctypes.data, there, 8, device.stream)
    device.call("spin", 1, other)
    device.call("synchronise", device.stream)
    assert (host == 7).all() and device.busy(), "on the other stream nothing has begun"
    device.call("synchronise", other)
    assert not device.busy() and list(device.streams) == [device.stream, other]
    device.close()
