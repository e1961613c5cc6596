"""Versions below which a dependency has a weakness that is published, against what is declared and pinned here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.architecture.graph import ROOT

FIXED = {
    "brotli": ("1.0.8", "CVE-2020-8927: a buffer overflow"),
    "certifi": ("2024.7.4", "CVE-2024-39689: a root that is not trusted any more"),
    "dash": ("2.15.0", "CVE-2024-21485: scripts in links"),
    "flask": ("2.3.2", "CVE-2023-30861: a session cookie for somebody else"),
    "h11": ("0.16.0", "CVE-2025-43859: smuggled requests"),
    "idna": ("3.7", "CVE-2024-3651: quadratic time"),
    "jinja2": ("3.1.6", "CVE-2025-27516: out of the sandbox"),
    "lxml": ("4.9.1", "CVE-2022-2309: a crash"),
    "protobuf": ("6.31.1", "CVE-2025-4565: endless recursion in the parser in Python"),
    "pyarrow": ("14.0.1", "CVE-2023-47248: code in a file that is read"),
    "pygments": ("2.15.1", "CVE-2022-40896: quadratic time"),
    "pyyaml": ("5.4", "CVE-2020-14343: code in a file that is read"),
    "requests": ("2.32.4", "CVE-2024-47081: credentials to another host"),
    "setuptools": ("78.1.1", "CVE-2025-47273: a file outside the folder"),
    "torch": ("2.6.0", "CVE-2025-32434: code in a file that is read"),
    "urllib3": ("2.5.0", "CVE-2025-50181: redirects that were switched off"),
    "waitress": ("3.0.1", "CVE-2024-49768: a request that should be refused"),
    "werkzeug": ("3.0.6", "CVE-2024-49767: memory without a limit"),
    "zipp": ("3.19.1", "CVE-2024-5569: an endless loop"),
}
"""Name -> (first version without the weakness, what it is). From the advisories of the projects; not complete."""
NOT_FOR_USERS = ("dev", "docs")
"""Extras that only who works on omb-py installs."""


def declared(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """(name, lowest version that pyproject.toml admits) of what users install."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = (texts for extra, texts in project["optional-dependencies"].items() if extra not in NOT_FOR_USERS)
    for text in (*project["dependencies"], *(text for texts in extras for text in texts)):
        requirement = Requirement(text)
        lowest = [part.version for part in requirement.specifier if part.operator in (">=", "==", "~=")]
        yield canonicalize_name(requirement.name), max(lowest, key=Version, default="0")


def pinned(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """(name, version) of constraints.txt, which CI installs."""
    for line in (root / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if match := re.match(r"([\w.-]+)==(\S+)", line):
            yield canonicalize_name(match[1]), match[2]


def weak(versions: Iterator[tuple[str, str]]) -> list[str]:
    """What has a weakness that a newer version has not, in words."""
    return [
        f"{name} {version}: {FIXED[name][1]}, fixed in {FIXED[name][0]}"
        for name, version in versions
        if name in FIXED and Version(version) < Version(FIXED[name][0])
    ]
