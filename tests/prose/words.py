"""Words that read as translated, in everything of the repository that is read; there is none of them."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


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
    """A page, comment or string, and its first line."""

    line: int
    text: str


def texts(path: Path) -> Iterator[Text]:
    """Read a whole page, or the comments and strings of a module."""
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
    """Yield the line of each wrong word, the word, and its replacement."""
    for word in WORDS if ANY.search(text.text) else ():
        right = [(each.start(), each.end()) for each in re.finditer(word.right, text.text, re.IGNORECASE | re.DOTALL)]
        for match in re.finditer(rf"\b(?:{word.pattern})\b", text.text, re.IGNORECASE):
            if not any(start <= match.start() and match.end() <= end for start, end in right):
                yield text.line + text.text.count("\n", 0, match.start()), match.group(), word.instead
