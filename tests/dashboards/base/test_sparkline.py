from __future__ import annotations

from urllib.parse import unquote
from xml.etree import ElementTree

from omb_py.dashboards.base import theme
from omb_py.dashboards.base.theme import HEIGHT, MOST, sparkline


def lines(values: list[float], mark: int | None = None) -> list[tuple[str, list[list[float]]]]:
    head, _, text = sparkline(values, mark).partition(",")
    assert head == "data:image/svg+xml"
    drawn = ElementTree.fromstring(unquote(text))
    return [(line.get("stroke"), [[*map(float, p.split(","))] for p in line.get("points").split()]) for line in drawn]


def test_the_part_after_the_change_has_its_colour() -> None:
    (before, old), (after, new) = lines([1.0, 1.0, 2.0, 2.0], 2)
    assert (before, after) == (theme.GREY, theme.VERDICT_COLOURS["SLOWER"])
    assert old[0][1] > HEIGHT / 2 > new[-1][1], "more is higher"
    assert len(lines([1.0, 2.0])) == 1


def test_many_values_become_few_points_and_one_none() -> None:
    ((_, points),) = lines([float(n) for n in range(1000)])
    assert len(points) <= MOST and points[0][0] < points[-1][0]
    assert sparkline([1.0]) == "" and lines([3.0, 3.0])
