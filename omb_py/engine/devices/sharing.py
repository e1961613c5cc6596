"""The device of each rank, and the check that no two share one, once all have opened theirs.

A count of visible devices does not tell: launchers may show each rank others (``srun --gpus-per-task=1``).
"""

from __future__ import annotations

from collections.abc import Sequence

from omb_py.engine.devices import Device
from omb_py.engine.rank.control_plane import Plane
from omb_py.engine.rank.launch_facts import DevicePlace
from omb_py.errors import EnvironmentProblem


def places_of(plane: Plane, device: Device, share: bool, host: str) -> list[DevicePlace]:
    """The devices of all ranks, by rank; called by all ranks together.

    Args:
        plane: lets the ranks agree; a session is one.
        device: of this rank.
        share: several ranks may use one device.
        host: name of this rank's node.

    Raises:
        EnvironmentProblem: on every rank alike, when several have the same one and `share` is off.
    """
    place: DevicePlace = {
        "rank": plane.rank,
        "host": host,
        "device": f"{device.kind}:{device.index}",
        "name": device.name,
        "identity": device.identity(),
        "clocks_khz": dict(device.clocks()),
    }
    places: list[DevicePlace] = plane.share(plane.gather(place))
    if not share:
        refuse_sharing(places)
    return places


def crowd(places: Sequence[DevicePlace]) -> int:
    """The most ranks that have the same device."""
    return max(map(len, _by_device(places)))


def refuse_sharing(places: Sequence[DevicePlace]) -> None:
    """Raises EnvironmentProblem when several ranks have the same device."""
    shared = max(_by_device(places), key=len)
    if len(shared) == 1:
        return
    host, ranks = shared[0]["host"], ", ".join(str(place["rank"]) for place in shared)
    units = len({place["identity"] for place in places if place["host"] == host})
    raise EnvironmentProblem(
        f"ranks {ranks} would share {shared[0]['device']} ({shared[0]['name']}) of {host}, where "
        f"{sum(place['host'] == host for place in places)} ranks have {units}: as many ranks on each machine as there "
        "are devices for them, or --share-device to let ranks share one (rows are labelled)"
    )


def _by_device(places: Sequence[DevicePlace]) -> list[list[DevicePlace]]:
    by_device: dict[tuple[str, str], list[DevicePlace]] = {}
    for place in places:
        by_device.setdefault((place["host"], place["identity"]), []).append(place)
    return list(by_device.values())
