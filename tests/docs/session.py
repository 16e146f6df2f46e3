"""Runs the Python blocks of one page in a project, one namespace for all of them.

It runs in the project's directory, reads one block per line (JSON), and prints the mistakes. An expected result is in
comments that begin with ``# ->``, after a statement or below it.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import json
import os
import sys
import tokenize
import traceback
from typing import Any

ARROW = "# ->"


def expectations(source: str, statements: list[ast.stmt]) -> dict[int, str]:
    """The expected result of each statement that has one, by the statement's place."""
    found: dict[int, list[str]] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or not token.string.startswith(ARROW):
            continue
        line = token.start[0]
        place = max((n for n, statement in enumerate(statements) if statement.lineno <= line), default=None)
        if place is None or (statements[place].end_lineno or 0) > line:
            raise SyntaxError(f"line {line}: '{ARROW}' stands after or below a whole statement")
        found.setdefault(place, []).append(token.string.removeprefix(ARROW).removeprefix(" ").rstrip())
    return {place: "\n".join(lines) for place, lines in found.items()}


def matches(expected: str, got: str) -> bool:
    """Return whether a result is as expected, with ``...`` for any text."""
    return doctest.OutputChecker().check_output(f"{expected}\n", f"{got}\n", doctest.ELLIPSIS)


def result(statement: ast.stmt, filename: str, namespace: dict[str, Any]) -> str:
    """Return the output of a statement, and its value if it is an expression."""
    printed = io.StringIO()
    value = None
    # Running the pages' own code is what this module is for.
    with contextlib.redirect_stdout(printed):
        if isinstance(statement, ast.Expr):
            value = eval(compile(ast.Expression(statement.value), filename, "eval"), namespace)  # noqa: S307 - see above
        else:
            exec(compile(ast.Module([statement], []), filename, "exec"), namespace)  # noqa: S102 - see above
    text = printed.getvalue() + ("" if value is None else repr(value))
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


def run(source: str, filename: str, line: int, namespace: dict[str, Any]) -> list[str]:
    """Run one block that begins at a line of a page; the mistakes, each with its line."""
    statements = ast.parse(source, filename).body
    expected = expectations(source, statements)
    mistakes: list[str] = []
    for place, statement in enumerate(statements):
        where = f"{filename}:{statement.lineno + line - 1}"
        ast.increment_lineno(statement, line - 1)
        wanted = expected.get(place)
        try:
            got = result(statement, filename, namespace)
        except Exception as error:
            got = f"{type(error).__name__}: {error}".rstrip()
            if wanted is None:
                mistakes.append(f"{where}: {traceback.format_exc()}")
                continue
        if wanted is not None and not matches(wanted, got):
            mistakes.append(f"{where}: expected\n{wanted}\ngot\n{got}")
    return mistakes


def main() -> None:
    """Set up Django and the table, and process the blocks."""
    answers = os.fdopen(os.dup(1), "w")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mysite.settings")
    import django

    django.setup()
    from dynamo_single.exceptions import ConfigurationError
    from dynamo_single.orm.rollout import knowledge, own_migrations
    from dynamo_single.orm.schema import registry
    from dynamo_single.table import get_table, schema
    from dynamo_single.table.flow import run as run_flow

    schema.apply(get_table())
    layouts = []
    with contextlib.suppress(ConfigurationError):  # a page may show a wrong model
        layouts = [registry.layout_of(model) for model in registry.all_models()]
    if all(
        each.sharding is None and not own_migrations.has_migrations(each.label.partition(".")[0]) for each in layouts
    ):
        # A page does not count requests that a process sends once.
        for each in layouts:
            run_flow(knowledge.ask(each))
    namespace: dict[str, Any] = {"__name__": "__page__"}
    for line in sys.stdin:
        block = json.loads(line)
        try:
            mistakes = run(block["source"], block["filename"], block["line"], namespace)
        except SyntaxError as error:
            mistakes = [f"{block['filename']}:{block['line']}: {error}"]
        print(json.dumps(mistakes), file=answers, flush=True)


if __name__ == "__main__":
    main()
