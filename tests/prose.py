"""Finds words that read as translated: ``python -m tests.prose``, a part of ``make lint``.

It looks at what is read: comments, docstrings and messages of the code, and the pages. ``WORDS`` says what stands
instead, and where a word is right.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
#: The list itself, a model of that name, and the licence-like texts of others: nothing of ours to read.
EXCEPT = {"tests/prose.py", "tests/unit/test_prose.py", "tests/unit/checks/test_checks.py"}


class Word(NamedTuple):
    """A word or phrase, what to write instead, and the phrases in which it is right."""

    pattern: str
    instead: str
    right: str = r"(?!)"


WORDS = (
    Word(
        r"behind",
        "after",
        # What lags, is left over, hidden, or on the other side of something.
        r"(lag\w*|lea?ve?s?|left|leaving|stay\w*|hid\w*|hide)(\s+\S+){0,9}\s+behind"
        r"|(is|are|be|was|were|ahead.*or)\s+behind(?!\s+(a|an|the|this|that|its?|them)\b)"
        r"|behind\s+(a|an|one|the)\s+(prox|unix|address|middleware)|behind\s+(proxies|which)"
        r"|behind\s+(\S+\s+){1,3}backs?\b"
        r"|(code|tables?|setting|managers?|Django's|cause)\s+(is\s+|lies\s+)?behind",
    ),
    Word(r"mend(s|ed|ing)?", "repair"),
    Word(r"(give|gives|gave|given|giving)\s+free", "release"),
    Word(r"(is|are|was|were|be|been)\s+said", "stated"),
    Word(r"told\s+(as|before|by|one\s+by\s+one|with)", "reported"),
    Word(r"anew", "again"),
    Word(r"by\s+itself\s+alone|for\s+itself\s+alone", "by itself"),
    Word(r"and\s+else\s+it\s+is", "otherwise"),
)


#: Any of the words. Hardly any file has one, and reading a file's comments and texts alone takes long.
ANY = re.compile("|".join(rf"\b(?:{word.pattern})\b" for word in WORDS), re.IGNORECASE)


class Text(NamedTuple):
    """Something to read, and the line that it begins on."""

    line: int
    text: str


def texts(path: Path) -> Iterator[Text]:
    """What there is to read in a file: a whole page, or the comments and texts of a module."""
    source = path.read_text()
    if not ANY.search(source):
        return
    if path.suffix != ".py":
        yield Text(1, source)
        return
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in kinds:
            # Before Python 3.12 the code in an f-string is a part of its text.
            is_f = token.type == tokenize.STRING and "f" in token.string[:2].lower()
            yield Text(token.start[0], re.sub(r"\{[^{}]*\}", "{}", token.string) if is_f else token.string)


def found(text: Text) -> Iterator[tuple[int, str, str]]:
    """Each wrong word of a text with its line, and what stands instead."""
    for word in WORDS if ANY.search(text.text) else ():
        right = [(each.start(), each.end()) for each in re.finditer(word.right, text.text, re.IGNORECASE | re.DOTALL)]
        for match in re.finditer(rf"\b(?:{word.pattern})\b", text.text, re.IGNORECASE):
            if not any(start <= match.start() and match.end() <= end for start, end in right):
                yield text.line + text.text.count("\n", 0, match.start()), match.group(), word.instead


def mistakes(paths: list[Path]) -> list[str]:
    """What is wrong in the files, a line each."""
    return [
        f"{path.relative_to(ROOT)}:{line}: “{' '.join(word.split())}”: write “{instead}”, or see tests/prose.py"
        for path in paths
        for text in texts(path)
        for line, word, instead in found(text)
    ]


def tracked() -> list[Path]:
    """The modules and pages of the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py", "*.md"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [ROOT / name for name in names if name not in EXCEPT and (ROOT / name).is_file()]


if __name__ == "__main__":
    wrong = mistakes(tracked())
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong))
