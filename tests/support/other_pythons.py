"""The Pythons of other Debian releases: ``python -m tests.support.other_pythons trixie sid``, as root.

Each release goes into a folder of its own (``build/debian/RELEASE``, by debootstrap, some 400 MB), gets the newest
version of every dependency from the package index, measures on two real ranks, and runs the tests that need neither a
second MPI library nor torch. Nothing of this machine changes: the release is entered by chroot in a mount namespace.
Exit code 1 where a test fails or nothing could be measured, 3 where debootstrap is missing.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.oldest_versions import dependencies

ROOT = Path(__file__).resolve().parents[2]
MIRROR = "http://deb.debian.org/debian"
TESTS = ("tests/engine/program", "tests/grammar", "tests/options", "tests/results/store", "tests/backends/mock")
MORE = ("mpich", "pytest", "pytest-timeout", "hypothesis")
ENTER = """
set -e
for part in proc sys dev; do mount --rbind /$part {root}/$part; done
mount -t tmpfs tmpfs {root}/tmp
for part in {shared}; do mkdir -p {root}$part; mount --bind $part {root}$part; done
mkdir -p {root}/omb-py; mount --bind {source} {root}/omb-py
exec chroot {root} sh -ec {script}
"""
INSIDE = """
cd /omb-py
export HOME=/root LC_ALL=C.UTF-8 PYTHONPATH=/omb-py PYTHONDONTWRITEBYTECODE=1
test -x /venv/bin/python || python3 -m venv /venv
/venv/bin/python -m pip -q install --no-cache-dir {packages}
/venv/bin/python --version
/venv/bin/python -m pip list --format freeze | grep -iE '^({names})==' | tr '\\n' ' '; echo
/venv/bin/python -m omb_py allreduce --backend mpi -n 2 -m 8:64 -c --store /tmp/store
/venv/bin/python -m pytest -q -p no:cacheprovider -m 'not slow and not mpi' {tests}
"""


def make(release: str, folder: Path) -> None:
    """Make the folder of a release where it is not complete. Raises CalledProcessError."""
    if not (folder / "usr/bin/python3").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        wanted = "--include=python3,python3-venv,ca-certificates"
        words = ["debootstrap", "--variant=minbase", wanted, release, str(folder), MIRROR]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    for name in ("resolv.conf", "hosts", "pip.conf", "ssl/certs/ca-certificates.crt"):
        if Path("/etc", name).exists():
            shutil.copy(Path("/etc", name), folder / "etc" / name)


def inside(folder: Path, tests: list[str]) -> int:
    """Install, measure and test in a release; its exit code."""
    packages = dependencies()
    names = "|".join(name.partition(">")[0] for name in packages)
    script = INSIDE.format(packages=shlex.join([*packages, *MORE]), names=names, tests=shlex.join(tests))
    shared = [path for path in os.environ.get("PIP_FIND_LINKS", "").split() if Path(path).is_dir()]
    words = ENTER.format(root=folder, shared=" ".join(shared), source=ROOT, script=shlex.quote(script))
    return subprocess.run(["unshare", "--mount", "sh", "-c", words], check=False).returncode


def main(words: list[str] | None = None) -> int:
    """Try each release in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("releases", nargs="+", help="names of Debian releases: trixie has Python 3.13, sid a newer one")
    parser.add_argument("--folder", type=Path, default=ROOT / "build/debian")
    parser.add_argument("--tests", nargs="+", default=list(TESTS))
    args = parser.parse_args(words)
    if shutil.which("debootstrap") is None or os.geteuid() != 0:
        print("needs root and debootstrap: apt-get install debootstrap", file=sys.stderr)
        return 3
    failed = []
    for release in args.releases:
        make(release, args.folder / release)
        print(f"== {release}", flush=True)
        if inside(args.folder / release, args.tests):
            failed.append(release)
    print(f"failed: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
