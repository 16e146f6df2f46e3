"""Check the repository, or show what it finds.

python -m tests.prose                     # a part of `make lint`: exit 1 on a word or a number past the budget
python -m tests.prose --show docs/how-to  # the sentences that match a pattern
python -m tests.prose --table             # the counts by folder
python -m tests.prose --lower             # store lower counts as the new budget
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.prose import budget, kept
from tests.prose.patterns import hits
from tests.prose.reading import Sentence, read
from tests.prose.words import found, texts

ROOT = Path(__file__).resolve().parents[2]
#: The folders and pages that have a budget; the listed words are looked for everywhere.
BUDGETED = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/",
    "dynamo_single/",
    "accounts/",
    "project/",
    "benchmarks/",
    "tests/",
)
#: The list itself, its tests, and a model whose name is one of the words.
EXCEPT = ("tests/prose/", "tests/unit/test_prose.py", "tests/unit/checks/test_checks.py")


def tracked() -> list[Path]:
    """Return the modules, pages and templates of the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.md", "*.html"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [Path(name) for name in names if not name.startswith(EXCEPT) and (ROOT / name).is_file()]


def words(path: Path) -> list[str]:
    """Return a line for each of the listed words in a file. Templates are not searched."""
    return [
        f"{path}:{line}: “{' '.join(word.split())}”: write “{instead}”, or see tests/prose/words.py"
        for text in (() if path.suffix == ".html" else texts(ROOT / path))
        for line, word, instead in found(text)
    ]


def counted(path: Path) -> kept.Found:
    """Return the words and the counts of one file."""
    return kept.Found(words(path), budget.count(budgeted([path])).get(budget.folder_of(path), {}))


def budgeted(paths: list[Path]) -> Iterator[tuple[Path, Sentence]]:
    """Yield each sentence that counts for a budget."""
    for path in paths:
        if str(path).startswith(BUDGETED):
            # The strings of tests are data and expectations.
            has_messages = path.parts[0] != "tests"
            yield from ((path, each) for each in read(ROOT / path) if has_messages or each.kind != "message")


def show(paths: list[Path], under: str) -> None:
    """Print the sentences under a path that match a pattern, with its remedy."""
    for path, sentence in budgeted([path for path in paths if str(path).startswith(under.rstrip("/"))]):
        for pattern, phrase in hits(sentence.kind, sentence.text):
            print(f"{path}:{sentence.line}: {sentence.text}\n    “{phrase}” ({pattern.name}): {pattern.remedy}")


def table(counts: dict[str, dict[str, budget.Count]]) -> None:
    """Print the counts by folder."""
    print(f"{'folder':40}{'kind':26}{'words':>8}{'patterns':>10}{'a 1,000':>9}{'average':>9}{'passive':>9}")
    for folder, kinds in sorted(counts.items()):
        for kind, each in sorted(kinds.items()):
            numbers = each.found
            density = 1000 * numbers.patterns / max(each.words, 1)
            print(
                f"{folder:40}{kind:26}{each.words:8}{numbers.patterns:10}{density:9.1f}"
                f"{numbers.average:9.1f}{numbers.passives:7} %"
            )


def main() -> int:
    """Run the linter."""
    parser = argparse.ArgumentParser(prog="python -m tests.prose")
    parser.add_argument("--show", metavar="PATH", help="print the sentences that match a pattern")
    parser.add_argument("--table", action="store_true", help="print the counts by folder")
    parser.add_argument("--lower", action="store_true", help="store lower counts as the new budget")
    options = parser.parse_args()
    paths = tracked()
    if options.show is not None:
        show(paths, options.show)
        return 0
    files = kept.read(ROOT, paths, counted)
    counts = budget.together((budget.folder_of(path), each.counts) for path, each in files)
    if options.table:
        table(counts)
        return 0
    if options.lower:
        budget.write(budget.lowered(counts, budget.stored()))
        return 0
    wrong = [line for _, each in files for line in each.words]
    excess = budget.over(counts, budget.stored())
    print("\n".join(wrong + excess), end="\n" if wrong or excess else "")
    if excess:
        print(
            "python -m tests.prose --show FOLDER prints the sentences. If the folder was moved, move its entry in"
            " tests/prose/budget.json too."
        )
    return int(bool(wrong or excess))


if __name__ == "__main__":
    sys.exit(main())
