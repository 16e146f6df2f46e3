"""Every block of the README and of docs/ is run: what the pages show is what happens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from dynamo_single.engines import LocalEngine, find_engine
from tests import children
from tests.docs import pages, project
from tests.docs.pages import ROOT, Block

TUTORIAL = ROOT / "docs/tutorial.md"
SETTINGS = "mysite/settings.py"

PAGES = pages.pages()
#: The pages that show more than text.
RUN = [page for page in PAGES if any(block.language != "text" for block in pages.blocks(page))]


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The two projects that pages start from.

    ``new`` is what Django makes. ``ready`` has an app ``shop`` and the settings that the tutorial adds.
    """
    new = project.start(tmp_path_factory.mktemp("new"))
    ready = project.start(tmp_path_factory.mktemp("ready"), app="shop")
    settings = [block for block in pages.blocks(TUTORIAL) if block.path == SETTINGS]
    assert settings, "docs/tutorial.md no longer adds to mysite/settings.py, which the other pages build on."
    prepared = project.Project(ready, "")
    for block in settings:
        prepared.run(block)
    assert not prepared.mistakes
    return {"new": new, "ready": ready}


@pytest.fixture(scope="session")
def prepared(templates: dict[str, Path]) -> Iterator[str]:
    """The server for pages that install the apps of the ready project."""
    server = children.Prepared(templates["ready"], "mysite.settings")
    yield server.address
    server.end()


def starts_from(blocks: list[Block]) -> str:
    """A page that configures the table itself starts from a new project, and every other one from a ready one."""
    own = any(block.path == SETTINGS and "DYNAMO_SINGLE = " in block.text for block in blocks)
    return "new" if own else "ready"


@pytest.mark.parametrize("page", RUN, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page_do_what_the_page_says(
    page: Path, templates: dict[str, Path], prepared: str, tmp_path: Path
) -> None:
    """Files are written, Python and commands run in order, and their results match the page."""
    blocks = pages.blocks(page)
    own_apps = any(block.path == SETTINGS and "INSTALLED_APPS" in block.text for block in blocks)
    with (
        LocalEngine(find_engine(ROOT)) as engine,
        project.make(
            templates[starts_from(blocks)],
            tmp_path / "mysite",
            engine.endpoint_url,
            server="" if own_apps else prepared,
        ) as scratch,
    ):
        for block in blocks:
            scratch.run(block)
    if scratch.mistakes:
        pytest.fail("\n\n".join(scratch.mistakes), pytrace=False)


def test_links_lead_somewhere() -> None:
    """Every link of a page to a file of the repository finds one."""
    missing = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in {*PAGES, *ROOT.glob("*.md")}
        for target in pages.links(page)
        if not (page.parent / target).exists()
    ]
    assert missing == []


def test_changelog_of_the_first_release_is_one_page() -> None:
    """It lists the features, since no project upgrades to the first release."""
    assert (ROOT / "CHANGELOG.md").read_text().count("\n") <= 150


def test_files_of_each_change_exist() -> None:
    """Every path in the section of the page for maintainers is a file or a folder of the repository."""
    _, _, section = (ROOT / "docs/development.md").read_text().partition("\n## The place of each change\n")
    named = [name for name in pages.code(section.partition("\n## ")[0]) if name.endswith(("/", ".py", ".txt"))]
    assert named
    assert [
        name for name in named if not any((folder / name).exists() for folder in (ROOT, ROOT / "dynamo_single"))
    ] == []


def test_pages_are_reached_from_the_index() -> None:
    """No page of docs/ stands alone: the index, or a page that it names, links to it."""
    alone = [page for page in PAGES if page.resolve() not in reached() and "decisions" not in page.parts]
    assert alone == []


@cache
def reached() -> set[Path]:
    """Return the pages that links reach from the index and the README."""
    found: set[Path] = set()
    waiting = [ROOT / "docs/index.md", ROOT / "README.md"]
    while waiting:
        current = waiting.pop().resolve()
        if current in found or current.suffix != ".md" or not current.is_file():
            continue
        found.add(current)
        waiting.extend(current.parent / target for target in pages.links(current))
    return found


# the harness itself: a test that cannot fail is a defect


def block_of(text: str, language: str) -> Block:
    """A block of a page that is nowhere."""
    return Block(ROOT / "docs/index.md", 10, language, text)


@pytest.fixture
def scratch(templates: dict[str, Path], prepared: str, tmp_path: Path, engine_url: str) -> project.Project:
    """A ready project."""
    return project.make(templates["ready"], tmp_path / "mysite", engine_url, prepared)


@pytest.fixture(scope="module")
def engine_url() -> object:
    """The address of an engine."""
    with LocalEngine(find_engine(ROOT)) as engine:
        yield engine.endpoint_url


@pytest.fixture(scope="module")
def running(
    templates: dict[str, Path], prepared: str, tmp_path_factory: pytest.TempPathFactory, engine_url: str
) -> Iterator[project.Project]:
    """Start a project with a Python session for all tests."""
    folder = tmp_path_factory.mktemp("running") / "mysite"
    with project.make(templates["ready"], folder, engine_url, prepared) as found:
        yield found


@pytest.fixture
def session(running: project.Project) -> project.Project:
    """Return that project without recorded mistakes."""
    running.mistakes.clear()
    return running


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("1 + 1  # -> 3", "docs/index.md:10: expected\n3\ngot\n2"),
        ("x = 1\n\nx  # -> 2", "docs/index.md:12: expected\n2\ngot\n1"),
        ("print('a')\n# -> a\n# -> b", "docs/index.md:10: expected\na\nb\ngot\na"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("1 / 0  # -> TypeError: ...", "got\nZeroDivisionError: division by zero"),
        ("1  # -> ZeroDivisionError: ...", "got\n1"),
        ("assert 1 == 2", "AssertionError"),
        ("for x in [1]:\n    x  # -> 1\n    x", "stands after or below a whole statement"),
        ("if", "invalid syntax"),
    ],
)
def test_a_wrong_result_is_found(session: project.Project, text: str, mistake: str) -> None:
    """A different value, output or error is a mistake with its line."""
    session.run(block_of(text, "python"))
    (found,) = session.mistakes
    assert mistake in found


@pytest.mark.parametrize(
    "text", ["1 + 1  # -> 2", "print('a\\nb')\n# -> a\n# -> b", "1 / 0  # -> ZeroDivisionError: ... zero", "None"]
)
def test_a_right_result_passes(session: project.Project, text: str) -> None:
    """A value, an output or an error that is as shown passes."""
    session.run(block_of(text, "python"))
    assert session.mistakes == []


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("$ python -c 'print(1)'\n2", "docs/index.md:10: expected\n2\ngot\n1"),
        ("$ python -c 'raise SystemExit(3)'", "ended with status 3"),
        ("$ rm -rf x", "'rm' is no command"),
        ("no command", "begins with a command"),
    ],
)
def test_a_wrong_command_is_found(scratch: project.Project, text: str, mistake: str) -> None:
    """Another output, a failure or an unknown command is a mistake."""
    scratch.run(block_of(text, "console"))
    (found,) = scratch.mistakes
    assert mistake in found


def test_a_line_that_another_test_runs_needs_that_test(
    scratch: project.Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line is skipped only while the file that covers it exists."""
    monkeypatch.setitem(project.RUN_ELSEWHERE, "make cake", "tests/contract/test_cake.py")
    scratch.run(block_of("$ make cake", "console"))
    (found,) = scratch.mistakes
    assert "tests/contract/test_cake.py, which runs it, is missing" in found


def test_files_are_written_and_added_to(scratch: project.Project) -> None:
    """A path in the first line makes a block a file; ``(add)`` appends."""
    with scratch:
        scratch.run(block_of("# shop/numbers.py\nONE = 1", "python"))
        scratch.run(block_of("# shop/numbers.py (add)\nTWO = ONE + 1", "python"))
        scratch.run(block_of("from shop import numbers\n\nnumbers.TWO  # -> 2", "python"))
    assert scratch.mistakes == []


@pytest.mark.parametrize("text", ["```\nx\n```", "```bash\nx\n```", "  ```python\n  x\n  ```", "```python\nx"])
def test_blocks_that_could_not_be_run_are_refused(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fence without a known language, with an indent, or without an end is an error."""
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(pages.PageError, match=r"page.md:1"):
        pages.blocks(page)


def test_where_a_block_begins() -> None:
    """A block knows its page and line."""
    assert replace(block_of("x", "python"), line=7).where == "docs/index.md:7"
