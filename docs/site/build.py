"""``python docs/site/build.py OUT``: the documentation as a site. Every warning fails, and nothing is fetched.

The pages lie in docs/ and in the root, where their links lead to each other. They are copied into one folder, with the
front page (README.md and navigation.md) and the pages of this folder, and Sphinx builds that.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
OF_ROOT = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
OF_ROOT |= {"SECURITY.md": "report-a-weakness.md", "changes/README.md": "news-fragments.md"}
"""Page in the root -> its name in the site."""
MADE = {"api.md": "reference/api.md", "plugin.md": "reference/plugin.md"}
"""Page of this folder -> its name in the site."""
_OUT = re.compile(r"(\]\((?:\.\./)*)\.\./(" + "|".join(map(re.escape, OF_ROOT)) + r")(?=[)#])")
_BESIDE = re.compile(r"(\]\()(" + "|".join(map(re.escape, OF_ROOT)) + r")(?=[)#])")


def from_docs(text: str) -> str:
    """A page of docs/ whose links to the root lead to the copies.

    >>> from_docs("[rules](../CONTRIBUTING.md#rules), [words](../../CHANGELOG.md)")
    '[rules](contributing.md#rules), [words](../changelog.md)'
    """
    return _OUT.sub(lambda link: link[1] + OF_ROOT[link[2]], text)


def from_root(text: str) -> str:
    """A page of the root whose links lead to the copies.

    >>> from_root("[tour](docs/tour.md), [rules](CONTRIBUTING.md#rules), [decisions](docs/decisions)")
    '[tour](tour.md), [rules](contributing.md#rules), [decisions](decisions/index.md)'
    """
    text = text.replace("](docs/decisions)", "](docs/decisions/index.md)").replace("](docs/", "](")
    return _BESIDE.sub(lambda link: link[1] + OF_ROOT[link[2]], text)


def others(folder: Path, navigation: str) -> list[str]:
    """The pages of a folder that the navigation does not name."""
    named = {line.strip() for line in navigation.splitlines()}
    return sorted(page.stem for page in folder.glob("*.md") if page.stem not in {*named, "index"})


def toctree(caption: str, pages: Sequence[str]) -> str:
    """A part of the navigation; empty without pages."""
    lines = ("", "```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", "")
    return "\n".join(lines) if pages else ""


def lay_out(folder: Path) -> None:
    """Write all pages into a folder, as one tree."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("site", "__pycache__"))
    for page in folder.rglob("*.md"):
        page.write_text(from_docs(page.read_text(encoding="utf-8")), encoding="utf-8")
    for name, page in OF_ROOT.items():
        (folder / page).write_text(from_root((ROOT / name).read_text(encoding="utf-8")), encoding="utf-8")
    navigation = (HERE / "navigation.md").read_text(encoding="utf-8")
    with (folder / "index.md").open("a", encoding="utf-8") as index:
        index.write(navigation + toctree("More", others(folder, navigation)))
    for name, page in MADE.items():
        (folder / page).parent.mkdir(exist_ok=True)
        shutil.copy(HERE / name, folder / page)
    pages = "\n".join(sorted(page.stem for page in (folder / "decisions").glob("*.md")))
    listed = f"# Decisions\n\nWhy it is as it is, oldest first.\n\n```{{toctree}}\n:maxdepth: 1\n{pages}\n```\n"
    (folder / "decisions" / "index.md").write_text(listed, encoding="utf-8")


def fetched(html: str) -> list[str]:
    """What a browser would fetch from elsewhere to show a page. Links that a reader may follow are not fetched.

    >>> fetched('<a href="https://a.b"></a><script src="https://a.b/c.js"></script><img src="d.png">')
    ['https://a.b/c.js']
    """
    return re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"'> ]+)", html)


def main(words: Sequence[str]) -> int:
    """0 where Sphinx warned of nothing and no page fetches anything from elsewhere."""
    out = Path(words[0]).resolve()
    pages = out.with_name(f"{out.name}-pages")
    lay_out(pages)
    shutil.rmtree(out, ignore_errors=True)
    sphinx = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-j", "auto"]
    code = subprocess.run([*sphinx, "-c", str(HERE), str(pages), str(out)], cwd=ROOT, check=False).returncode
    shown = {page.relative_to(out): fetched(page.read_text(encoding="utf-8")) for page in out.rglob("*.html")}
    for page, addresses in shown.items():
        if addresses:
            print(f"{page} fetches {', '.join(addresses)}", file=sys.stderr)
    print(f"{len(shown)} pages in {words[0]}: open {words[0]}/index.html")
    return code or int(any(shown.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
