"""The linter of prose: its findings, its exceptions, and the repository's budget."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.deep import by_make_check
from tests.prose import __main__ as prose
from tests.prose import budget, kept, reading, words
from tests.prose.patterns import PATTERNS, hits


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("The page behind this one.", "after"),
        ("What cannot be\n mended is refused.", "repair"),
        ("Claims that it gives free.", "release"),
        ("As is said below.", "stated"),
        ("A wrong name is told before anything is sent.", "reported"),
        ("The write is begun anew.", "again"),
    ],
)
def test_listed_word_is_found(text: str, instead: str) -> None:
    """Also across the end of a line."""
    assert [found[2] for found in words.found(words.Text(1, text))] == [instead]


@pytest.mark.parametrize(
    "text",
    [
        "A claim was left behind.",
        "An index lags behind the table.",
        "Behind a proxy that is the proxy's.",
        "It was changed behind the app's back.",
        "An object that was behind follows.",
        "The caller is told how many there are.",
        "amended, recommended",
    ],
)
def test_listed_word_is_allowed_in_idioms(text: str) -> None:
    """English has uses of its own for some of them."""
    assert list(words.found(words.Text(1, text))) == []


def test_listed_words_are_found_in_texts_only(tmp_path: Path) -> None:
    """A docstring, a comment and a message, each with its line; code in an f-string is code."""
    module = tmp_path / "module.py"
    module.write_text('"""One.\n\nMended."""\nmended = behind = 1  # anew\nsaid = f"{mended}, given free"\n')
    found = [line for text in words.texts(module) for line, _, _ in words.found(text)]
    assert found == [3, 4, 5]


#: For each pattern a sentence that matches it alone, and how we write it.
EXAMPLES = {
    "clause as subject": ("What is stored stays.", "Stored values are kept."),
    "clause as object": ("A list of what is stored.", "A list of the stored items."),
    "pronoun for a noun": ("It is the one in the index.", "It is the key in the index."),
    "inversion": ("Of two keys the first is used.", "The first of two keys is used."),
    "where for if": ("The write fails where there is a claim.", "The write fails if there is a claim."),
    "data that speaks": ("A marker says when it ends.", "A marker contains the time when it ends."),
    "asked": ("The index is asked first.", "The index is queried first."),
    "answers": ("A key answers the query.", "A key serves the query."),
    "private noun": ("The cursor keeps its moment.", "The cursor keeps its datetime."),
    "phrasal calque": ("The children go along.", "The deletion cascades to the children."),
    "negation without its verb": ("The call sends nothing.", "The call does not send a request."),
    "so for this way": ("Values are stored so.", "Values are stored this way."),
    "error as a noun": ("A second write is `StaleObject`.", "A second write raises `StaleObject`."),
    "stacked clauses": (
        "A key that has an item which a page that is open lists.",
        "An open page lists an item of a key.",
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_pattern_is_found_in_a_sentence(name: str) -> None:
    """A paragraph is like everything except titles and summaries."""
    (sentence,) = reading.page(EXAMPLES[name][0])
    assert name in [pattern.name for pattern, _ in hits(sentence.kind, sentence.text)]


@pytest.mark.parametrize("name", EXAMPLES)
def test_rewritten_sentence_has_no_pattern(name: str) -> None:
    """No other pattern finds fault with the remedy."""
    assert [hits(each.kind, each.text) for each in reading.page(EXAMPLES[name][1])] == [[]]


def test_pattern_is_found_in_a_title() -> None:
    """A title names its subject."""
    (title,) = reading.page("## Where it goes on")
    assert {pattern.name for pattern, _ in hits(title.kind, title.text)} == {"riddle for a title"}


def test_pattern_is_found_in_a_summary() -> None:
    """A function's docstring begins with a verb."""
    summary, sentence = reading.module('def size():\n    """How many there are."""\n')
    assert [pattern.name for pattern, _ in hits(summary.kind, summary.text)] == ["riddle for a summary"]
    assert hits(sentence.kind, sentence.text) == []


def test_each_pattern_has_an_example() -> None:
    """Titles and summaries have tests of their own above."""
    assert {each.name for each in PATTERNS} - EXAMPLES.keys() == {"riddle for a title", "riddle for a summary"}


def test_module_is_read_without_its_code() -> None:
    """Docstrings, comments and messages; names, keys, expressions and pragmas are code."""
    source = '''"""A module."""

KEY = "A#{what}"  # noqa: E501


class Kept:
    """A class."""

    #: Two lines
    #: of a comment.
    name = f"Cannot keep {KEY} # here."  # The reason.
'''
    found = [(each.line, each.kind, each.text) for each in reading.module(source)]
    assert found == [
        (1, "doc", "A module."),
        (7, "doc", "A class."),
        (11, "message", "Cannot keep X # here."),
        (9, "comment", "Two lines of a comment."),
        (11, "comment", "The reason."),
    ]


def test_page_is_read_without_its_code() -> None:
    """Code blocks and comments are skipped, inline code becomes a placeholder, and a link its text."""
    source = (
        "# Keys\n\nUse `IndexKey` and [`get()`](x.md).\nAlways.\n\n"
        "```python\nwhat = 1\n```\n\n- An *item*.\n| a | cell |\n"
    )
    found = [(each.line, each.kind, each.text) for each in reading.page(source)]
    assert found == [
        (1, "title", "Keys"),
        (3, "page", "Use `E` and `x`."),
        (3, "page", "Always."),
        (10, "page", "An item."),
        (11, "cell", "cell"),
    ]


def test_template_is_read_without_its_markup() -> None:
    """Translated strings, singular and plural."""
    source = '{% translate "Log in" %}{% blocktranslate %}{{ n }} item{% plural %}{{ n }} items{% endblocktranslate %}'
    assert [each.text for each in reading.template(source)] == ["Log in", "X item", "X items"]


def counts_of(page: str) -> dict[str, dict[str, budget.Count]]:
    """Return the counts of one page in ``docs``."""
    return budget.count((Path("docs/page.md"), each) for each in reading.page(page))


def test_folder_within_its_goal_needs_no_budget() -> None:
    """Even a short page may have one pattern."""
    assert budget.over(counts_of("What stays counts. "), {}) == []


def test_folder_past_its_goal_is_reported() -> None:
    """The report contains the number and the allowed number."""
    assert budget.over(counts_of("What stays counts. " * 3), {}) == ["docs, pages: 3 patterns, at most 1 allowed"]


def test_folder_within_its_budget_is_not_reported() -> None:
    """A folder that was worse before."""
    assert budget.over(counts_of("What stays counts. " * 3), {"docs": {"pages": budget.Allowed(3)}}) == []


def test_budget_falls_with_the_counts() -> None:
    """The budget gets the lower number, until it reaches the goal."""
    before = {"docs": {"pages": budget.Allowed(5)}}
    assert budget.lowered(counts_of("What stays counts. " * 3), before) == {"docs": {"pages": {"patterns": 3}}}
    assert budget.lowered(counts_of("Values are stored."), before) == {}


def test_budget_does_not_rise() -> None:
    """This applies to known and new folders."""
    counts = counts_of("What stays counts. " * 3)
    assert budget.lowered(counts, {"docs": {"pages": budget.Allowed(2)}}) == {"docs": {"pages": {"patterns": 2}}}
    assert budget.lowered(counts, {}) == {}


def test_budget_names_existing_folders_only() -> None:
    """An entry of a removed folder would be a hidden allowance."""
    assert [name for name in json.loads(budget.FILE.read_text()) if not (prose.ROOT / name).exists()] == []


def test_only_changed_files_are_read_again(tmp_path: Path) -> None:
    """The findings of the others are those of the last run."""
    same, changed = Path("same.md"), Path("changed.md")
    runs: list[list[Path]] = []
    for text in ("One page.", "Another page."):
        (tmp_path / same).write_text("A page.")
        (tmp_path / changed).write_text(text)
        runs.append([])

        def count(path: Path) -> kept.Found:
            runs[-1].append(path)
            return kept.Found([str(path)], counts_of((tmp_path / path).read_text())["docs"])

        found = kept.read(tmp_path, [same, changed], count)
    assert runs == [[same, changed], [changed]]
    assert found[0] == (same, kept.Found(["same.md"], counts_of("A page.")["docs"]))


@by_make_check
def test_repository_is_within_its_budget() -> None:
    """This is a part of `make lint`, for runs of only the tests."""
    paths = prose.tracked()
    assert [line for path in paths for line in prose.words(path)] == []
    assert budget.over(budget.count(prose.budgeted(paths)), budget.stored()) == []
