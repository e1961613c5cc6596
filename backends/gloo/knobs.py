"""What can be set in Gloo by the environment: a declared list with its sources, since it lists nothing."""

from __future__ import annotations

import os
from typing import Final

from omb_py.backends.knobs import Choice, Knob, LibraryKnobs

_DECLARED: Final = (
    (
        *("GLOO_SOCKET_IFNAME", (), "Network interfaces with commas, which are used in turn."),
        "PyTorch documentation, torch.distributed, Common environment variables",
    ),
    (
        *(
            "GLOO_DEVICE_TRANSPORT",
            ("TCP", "TCP_TLS"),
            "How bytes travel; TCP_TLS only where PyTorch was built with it: wheels are not.",
        ),
        "PyTorch 2.13, torch/csrc/distributed/c10d/GlooDeviceFactory.cpp",
    ),
)
"""Name, values, meaning, and source. Gloo chooses its algorithms by itself."""


def library_knobs() -> LibraryKnobs:
    """The declared list with the values of this environment. No library is loaded."""
    knobs = tuple(
        Knob(
            name,
            "enum" if words else "text",
            os.environ.get(name, ""),
            name,
            tuple(map(Choice, words)),
            description=meaning,
            source=source,
        )
        for name, words, meaning, source in _DECLARED
    )
    return LibraryKnobs("gloo", "Gloo", how="a declared list", knobs=knobs)
