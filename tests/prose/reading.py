"""Read the sentences of pages, modules and templates; leave their code out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Sentence(NamedTuple):
    """A sentence, title, table cell or summary, and the line on which its paragraph begins."""

    line: int
    kind: str
    text: str


CODE = re.compile(r"``?([^`]+)``?")
CLASS = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]*)+")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s+")
END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`“])")
FENCE = re.compile(r"^ *(```|~~~).*?^ *\1 *$|<!--.*?-->", re.DOTALL | re.MULTILINE)
TRANSLATED = re.compile(
    r"""\{%\s*translate\s+(["'])(.+?)\1|\{%\s*blocktranslate[^%]*%\}(.*?)\{%\s*endblocktranslate""", re.DOTALL
)
Defined = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def plain(text: str) -> str:
    """Replace code by “`E`” (a class) or “`x`”, and links and emphasis by their text."""
    text = LINK.sub(r"\1", text) if "](" in text else text
    if "`" in text:
        text = CODE.sub(lambda match: "`E`" if CLASS.fullmatch(match[1]) else "`x`", text)
    return re.sub(r"[*_]{2}|(?<!\w)\*|\*(?!\w)", "", text) if "*" in text or "__" in text else text


def sentences(line: int, kind: str, text: str) -> Iterator[Sentence]:
    """Split a paragraph."""
    for part in END.split(" ".join(plain(text).split())):
        if part.strip(" |-:"):
            yield Sentence(line, kind, part.strip())


def page(source: str) -> Iterator[Sentence]:
    """Read a page of Markdown: titles, paragraphs, list items and cells of tables."""
    source = FENCE.sub(lambda match: "\n" * match[0].count("\n"), source)
    paragraph: list[str] = []
    begun = 0
    for number, line in enumerate([*source.splitlines(), ""], 1):
        text = line.strip()
        is_row, is_title = text.startswith("|"), text.startswith("#")
        if paragraph and (not text or is_row or is_title or ITEM.match(line)):
            yield from sentences(begun, "page", " ".join(paragraph))
            paragraph = []
        if is_title:
            yield Sentence(number, "title", plain(text.lstrip("# ")))
        elif is_row:
            for cell in text.strip("|").split("|"):
                yield from sentences(number, "cell", cell) if re.search("[a-z]{3}", cell) else ()
        elif text:
            begun = begun if paragraph else number
            paragraph.append(ITEM.sub("", line, count=1))


def module(source: str) -> Iterator[Sentence]:
    """Read a module: docstrings, comments, and each string that has the words of a message."""
    docstrings: set[int] = set()
    strings: list[ast.Constant | ast.JoinedStr] = []
    inner: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Defined):
            yield from _docstring(node)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            inner.update(id(each) for each in ast.walk(node) if each is not node)
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)):
            strings.append(node)
    strings = [each for each in strings if id(each) not in inner]
    for each in strings:
        if id(each) not in docstrings:
            yield from _message(each)
    yield from _comments(source, strings)


def _docstring(node: Defined) -> Iterator[Sentence]:
    text = ast.get_docstring(node)
    if not text:
        return
    line = node.body[0].lineno
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not any(
        getattr(each, "id", getattr(each, "attr", "")) in {"property", "cached_property"}
        for each in node.decorator_list
    ):
        yield Sentence(line, "summary", plain(" ".join(text.partition("\n\n")[0].split())))
    for paragraph in text.split("\n\n"):
        if not re.match(r"\s*(?:>>>|::|\|)", paragraph):
            yield from sentences(line, "doc", paragraph)


def _message(node: ast.Constant | ast.JoinedStr) -> Iterator[Sentence]:
    if isinstance(node, ast.JoinedStr):
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
    else:
        text = node.value if isinstance(node.value, str) else ""
    # Three blanks: a key, a name or an expression has fewer.
    if text.count(" ") > 2 and re.search("[a-z]{3}", text):
        yield from sentences(node.lineno, "message", text)


def _comments(source: str, strings: list[ast.Constant | ast.JoinedStr]) -> Iterator[Sentence]:
    within: set[int] = set()
    columns: dict[int, int] = {}
    for node in strings:
        within.update(range(node.lineno, node.end_lineno or node.lineno))
        last = node.end_lineno or node.lineno
        columns[last] = max(columns.get(last, 0), node.end_col_offset or 0)
    paragraph: list[str] = []
    begun = previous = 0
    for number, line in enumerate(source.splitlines(), 1):
        if "#" not in line or number in within:
            continue
        at = line.find("#", len(line.encode()[: columns.get(number, 0)].decode()))
        if at < 0 or re.match(r"#\s*(?:noqa|type:|pragma|pyright|!)", line[at:]):
            continue
        if paragraph and (number != previous + 1 or line[:at].strip()):
            yield from sentences(begun, "comment", " ".join(paragraph))
            paragraph = []
        begun = begun if paragraph else number
        previous = number
        paragraph.append(line[at:].lstrip("#: "))
    if paragraph:
        yield from sentences(begun, "comment", " ".join(paragraph))


def template(source: str) -> Iterator[Sentence]:
    """Read the translated strings of a template."""
    for match in TRANSLATED.finditer(source):
        text = re.sub(r"\{\{.*?\}\}", "X", match[2] or match[3] or "")
        for part in re.split(r"\{%\s*plural\s*%\}", text):
            yield from sentences(source.count("\n", 0, match.start()) + 1, "message", part)


READERS = {".md": page, ".py": module, ".html": template}


def read(path: Path) -> Iterator[Sentence]:
    """Read a file by its type."""
    return READERS[path.suffix](path.read_text())
