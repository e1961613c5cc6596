"""``make audit``: known weaknesses and withdrawn releases of what omb-py depends on.

Three questions: has a declared minimum or a pinned version a weakness that :mod:`tests.audit.floors` lists; has a
pinned release been withdrawn from its index (yanked); does pip-audit know a weakness, by PyPI's or OSV's database. Exit
code 1 where one is found, 3 where no database could be asked, so that silence is never taken for an answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.audit.floors import declared, pinned, weak

LARGE = ("torch",)
"""pip would fetch some hundred MB to read what it already says."""
SERVICES = ("pypi", "osv")


def yanked(report: dict[str, Any]) -> list[str]:
    """The withdrawn releases in a report of pip's."""
    items = ((item["metadata"], item.get("is_yanked")) for item in report["install"])
    return [f"{facts['name']} {facts['version']}: withdrawn by its authors" for facts, gone in items if gone]


def known(answer: dict[str, Any]) -> tuple[int, list[str]]:
    """(packages that a database knows, their weaknesses) of pip-audit's JSON."""
    asked = [package for package in answer["dependencies"] if "skip_reason" not in package]
    return len(asked), [
        f"{package['name']} {package['version']}: {weakness['id']}"
        for package in asked
        for weakness in package.get("vulns", ())
    ]


def output(*words: str) -> str:
    """What a Python module prints."""
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)
    return done.stdout


def report_of(requirements: Path) -> dict[str, Any]:
    """pip's report on releases that it would install; without any where it cannot say."""
    words = ("--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report", "-", "-r", str(requirements))
    return dict(json.loads(output("pip", "--disable-pip-version-check", "install", *words) or '{"install": []}'))


def judged(requirements: Path) -> tuple[int, list[str]]:
    """The answer of the first database that knows a package."""
    for service in SERVICES:
        words = ("-s", service, "-f", "json", "--no-deps", "--disable-pip", "--progress-spinner", "off")
        count, weaknesses = known(
            json.loads(output("pip_audit", *words, "-r", str(requirements)) or '{"dependencies": []}')
        )
        if count:
            return count, weaknesses
    return 0, []


def told(question: str, answers: Iterable[str]) -> bool:
    """Print an answer. Returns whether there was something."""
    lines = list(answers)
    print(f"{question}: {'; '.join(lines) or 'none'}")
    return bool(lines)


def main() -> int:
    """Ask all three."""
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder) / "pinned.txt"
        versions = [(name, version) for name, version in pinned() if name not in LARGE]
        requirements.write_text("".join(f"{name}=={version}\n" for name, version in versions))
        bad = told("declared minimum with a known weakness", weak(declared()))
        bad |= told("pinned version with a known weakness", weak(pinned()))
        report = report_of(requirements)
        bad |= told(f"withdrawn, of {len(report['install'])} pinned releases", yanked(report))
        count, weaknesses = judged(requirements)
    if count:
        bad |= told(f"weaknesses that a database knows, of {count} pinned releases", weaknesses)
    else:
        print("pip-audit: no database knows any of these packages, or none could be reached: nothing is known")
    return 1 if bad else 0 if count else 3


if __name__ == "__main__":
    sys.exit(main())
