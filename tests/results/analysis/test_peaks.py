"""Peaks of links, and shares of them."""

from __future__ import annotations

from typing import Any

import pytest

from omb_py.results.analysis import peaks

CARD: dict[str, Any] = {
    "address": "0000:18:00.0",
    "kind": "network",
    "names": ["ib0", "mlx5_0"],
    "gts": 16.0,
    "width": 16,
    "most_gts": 16.0,
    "most_width": 16,
    "slot_width": 16,
}
HDR = {"device": "mlx5_0", "port": "1", "rate": "200 Gb/sec (4X HDR)", "state": "4: ACTIVE"}
FABRIC: dict[str, Any] = {"pcie": [CARD], "infiniband": [HDR], "network": {"ib0": {"speed_mbit": "200000"}}}
ETHERNET: dict[str, Any] = {"network": {"eth0": {"speed_mbit": "10000"}, "eth1": {"speed_mbit": "-1"}}}
H100 = {"name": "NVIDIA H100 80GB HBM3"}
NVLINK: dict[str, Any] = {"gpus": {"gpus": [H100, H100], "pairs": [{"path": "NV18"}]}}


def row(**fields: Any) -> dict[str, Any]:
    usual = {"benchmark": "bw", "unit": "MB/s", "value": 20_000.0, "busbw_gbps": None, "nodes": 2, "device": "cpu"}
    return {**usual, "ranks": 2, "ranks_per_node": 1, "bw_formula": None, "parameters": {}, **fields}


def allreduce(busbw: float, **fields: Any) -> dict[str, Any]:
    return row(benchmark="allreduce", unit="us", busbw_gbps=busbw, bw_formula="nccl-tests:all_reduce", **fields)


@pytest.mark.parametrize(
    ("gts", "width", "name", "gbps"),
    [
        (2.5, 4, "PCIe 1 x4", 1.0),
        (5.0, 8, "PCIe 2 x8", 4.0),
        (8.0, 16, "PCIe 3 x16", 15.7538),
        (16.0, 16, "PCIe 4 x16", 31.5077),
        (32.0, 16, "PCIe 5 x16", 63.0154),
    ],
)
def test_a_pcie_link_carries_its_transfers_less_the_encoding(gts: float, width: int, name: str, gbps: float) -> None:
    peak = peaks.pcie_peak(gts, width)
    assert peak is not None and peak.name == name and peak.gbps == pytest.approx(gbps, abs=1e-4)


def test_a_speed_that_is_not_published_has_no_peak() -> None:
    assert peaks.pcie_peak(20.0, 16) is None


def test_every_published_rate_has_a_source_and_a_date() -> None:
    for entries in peaks.published().values():
        for entry in entries:
            assert len(entry["source"]) > 20 and entry["date"].year >= 2026


class TestLinks:
    def test_a_card_at_its_width_is_right(self) -> None:
        card, port = peaks.links(FABRIC)
        assert (card.what, card.peak.name, card.problem) == ("network 0000:18:00.0 ib0 mlx5_0", "PCIe 4 x16", "")
        assert (port.what, port.peak.gbps) == ("port mlx5_0", 25.0)

    @pytest.mark.parametrize(
        ("slot", "said"),
        [
            (8, "a card of x16 in a slot of x8"),
            (16, "x8 of a card of x16 in a slot of x16: reseat"),
            (None, "x8 of a card of x16 of its slot: reseat"),
        ],
    )
    def test_a_card_with_fewer_lanes_is_named(self, slot: int | None, said: str) -> None:
        (card,) = peaks.links({"pcie": [{**CARD, "width": 8, "slot_width": slot}]})
        assert card.narrow and card.problem.startswith(said)

    def test_a_slower_speed_may_be_that_of_an_idle_card(self) -> None:
        (card,) = peaks.links({"pcie": [{**CARD, "gts": 2.5}]})
        assert not card.narrow and card.problem.startswith("2.5 GT/s of 16: usual while idle")


class TestNetwork:
    def test_ports_of_infiniband_count_and_not_their_interfaces(self) -> None:
        peak = peaks.network_peak(FABRIC)
        assert peak is not None and (peak.name, peak.gbps) == ("200 Gbit/s mlx5_0", 25.0)

    def test_a_port_carries_no_more_than_the_link_of_its_card(self) -> None:
        peak = peaks.network_peak({**FABRIC, "pcie": [{**CARD, "width": 8}]})
        assert peak is not None and peak.name == "PCIe 4 x8" and peak.gbps == pytest.approx(15.754, abs=1e-3)

    def test_ports_add_up(self) -> None:
        peak = peaks.network_peak({"infiniband": [HDR, {**HDR, "device": "mlx5_1"}]})
        assert peak is not None and (peak.name, peak.gbps) == ("2 ports", 50.0)

    @pytest.mark.parametrize("state", ["1: DOWN", None])
    def test_a_port_that_is_down_does_not_count(self, state: str | None) -> None:
        assert peaks.network_peak({"infiniband": [{**HDR, "state": state}]}) is None

    def test_ethernet_that_says_its_speed_counts(self) -> None:
        peak = peaks.network_peak(ETHERNET)
        assert peak is not None and (peak.name, peak.gbps) == ("10 Gbit/s eth0", 1.25)


class TestGpus:
    def test_nvlinks_count_by_their_number_and_the_published_rate(self) -> None:
        peak = peaks.gpu_peak(NVLINK)
        assert peak is not None and (peak.name, peak.gbps) == ("NVLink 18 links", 450.0)

    def test_gpus_without_nvlink_have_their_pcie(self) -> None:
        node = {"gpus": {"gpus": [H100, H100], "pairs": [{"path": "PHB"}]}, "pcie": [{**CARD, "kind": "GPU"}]}
        peak = peaks.gpu_peak(node)
        assert peak is not None and peak.name == "PCIe 4 x16"

    def test_an_unpublished_gpu_has_no_peak(self) -> None:
        assert peaks.gpu_peak({"gpus": {"gpus": [{"name": "X1"}] * 2, "pairs": [{"path": "NV4"}]}}) is None


class TestShare:
    def test_between_nodes_is_of_the_slowest_node(self) -> None:
        slow = {"infiniband": [{**HDR, "rate": "100 Gb/sec (2X HDR)"}]}
        metric = peaks.peak_metric(row(), [FABRIC, slow])
        assert metric == {"peak.100 Gbit/s mlx5_0": 12.5}
        assert peaks.share_of(row(value=10_000.0, metrics=metric)) == (0.8, "100 Gbit/s mlx5_0")

    def test_both_directions_count_half_each(self) -> None:
        both = row(benchmark="bibw", value=40_000.0)
        assert peaks.share_of({**both, "metrics": peaks.peak_metric(both, [FABRIC] * 2)}) == (0.8, "200 Gbit/s mlx5_0")

    def test_of_a_ring_is_its_busbw(self) -> None:
        ring = allreduce(20.0, ranks=8, ranks_per_node=4)
        assert peaks.share_of({**ring, "metrics": peaks.peak_metric(ring, [FABRIC] * 2)}) == (0.8, "200 Gbit/s mlx5_0")

    def test_of_an_alltoall_counts_what_leaves_the_node(self) -> None:
        """4 ranks on each of 2 nodes: 4 of 7 blocks leave, of 4 ranks: busbw · 4 · 4 / 7 passes the ports."""
        exchange = row(benchmark="alltoall", unit="us", busbw_gbps=7.0, bw_formula="nccl-tests:alltoall")
        exchange |= {"ranks": 8, "ranks_per_node": 4}
        (gbps,) = peaks.peak_metric(exchange, [FABRIC] * 2).values()
        assert gbps == pytest.approx(25.0 * 7 / 16)

    def test_on_one_node_is_of_its_gpus(self) -> None:
        inside = allreduce(360.0, nodes=1, device="cuda")
        assert peaks.share_of({**inside, "metrics": peaks.peak_metric(inside, [NVLINK])}) == (0.8, "NVLink 18 links")

    @pytest.mark.parametrize(
        "fields",
        [
            {"nodes": 1},  # shared memory declares no peak
            {"unit": "us"},  # a latency has no rate
            {"nodes": 1, "device": "cuda", "parameters": {"staging": "staged"}},
        ],
    )
    def test_what_has_no_peak_has_no_share(self, fields: dict[str, Any]) -> None:
        assert peaks.peak_metric(row(**fields), [{**FABRIC, **NVLINK}]) == {}

    def test_a_node_that_declares_nothing_leaves_it_open(self) -> None:
        assert peaks.peak_metric(row(), [FABRIC, {}]) == {} == peaks.peak_metric(row(), [])
        assert peaks.share_of(row(metrics={"pvar.x": 1.0})) is None
