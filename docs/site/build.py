"""Build the documentation as a site: ``python docs/site/build.py`` writes var/site/html.

The pages of docs/ are copied, the index gets the navigation of its own lists, and each public module gets a page made
of its docstrings. A missing page or heading that a link names fails the build.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SITE = ROOT / "var/site"
SOURCE = SITE / "source"
#: A line for each public module, with its public names.
NAMES = ROOT / "tests/unit/public_names.txt"
_SECTION = re.compile(r"\*\*(.+)\*\*")
_LINK = re.compile(r"\[[^\]]+\]\(([^)#]+\.md)\)")


def contents(index: str) -> dict[str, list[str]]:
    """Return the pages of each section of the index."""
    sections: dict[str, list[str]] = {}
    for line in index.splitlines():
        if found := _SECTION.fullmatch(line.strip()):
            sections[found[1]] = []
        elif line.startswith("- ") and sections:
            pages = [each for each in _LINK.findall(line) if not each.startswith("..")]
            sections[[*sections][-1]].extend(pages)
    return sections


def toctree(caption: str, pages: list[str]) -> str:
    """Return a list of pages for the navigation."""
    listed = "\n".join(page.removesuffix(".md") for page in dict.fromkeys(pages))
    return f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listed}\n```\n"


def modules() -> Iterator[tuple[str, str]]:
    """Yield each public module with the text of its page; a module that contains only constants is skipped."""
    for line in NAMES.read_text().splitlines():
        module, _separator, names = line.partition(": ")
        members = ", ".join(name for name in names.split() if not name.isupper())
        if members:
            title = f"# {module}\n\n"
            options = f":members: {members}", ":imported-members:", ":member-order: bysource", ":no-index:"
            directive = "\n   ".join((f".. automodule:: {module}", *options))
            yield module, f"{title}```{{eval-rst}}\n{directive}\n```\n"


def main() -> int:
    """Write the sources and build the site."""
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCE, ignore=shutil.ignore_patterns("site", "*.json", "__pycache__"))
    shutil.copy(ROOT / "CHANGELOG.md", SOURCE / "changelog.md")
    decisions = sorted(f"decisions/{path.name}" for path in (SOURCE / "decisions").glob("*.md"))
    for path in SOURCE.glob("*.md"):
        text = path.read_text().replace("](decisions/)", f"]({decisions[-1]})")
        text = text.replace("](../CHANGELOG.md)", "](changelog.md)")
        path.write_text(text.replace("](docs/", "](") if path.name == "changelog.md" else text)
    sections = contents((SOURCE / "index.md").read_text())
    (SOURCE / "api").mkdir()
    for module, text in modules():
        (SOURCE / "api" / f"{module}.md").write_text(text)
    sections["API"] = [f"api/{module}" for module, _ in modules()]
    sections["Decisions"] = decisions
    listed = {page for pages in sections.values() for page in pages}
    others = sorted(str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.md"))
    sections["More"] = [
        page for page in others if page not in listed and not page.startswith("api/") and page != "index.md"
    ]
    with (SOURCE / "index.md").open("a") as index:
        index.writelines(toctree(caption, pages) for caption, pages in sections.items())
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going", "-c", str(HERE), str(SOURCE)]
    return subprocess.run([*command, str(SITE / "html")], check=False).returncode  # noqa: S603 - our own command


if __name__ == "__main__":
    sys.exit(main())
