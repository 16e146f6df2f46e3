"""The alternative in each error works as its message words it, with Django's results on SQLite.

A place in the code that makes a refusal without a row here, or a reason in ``reasons.py``, fails the first test.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from tests.contract.ways import aggregates, methods, results, where, writes
from tests.contract.ways.collected import KINDS, made, places
from tests.contract.ways.reasons import ELSEWHERE, REASONS
from tests.contract.ways.rows import Row, evaluated, told
from tests.contract.ways.shop import Shop

TABLES = (where.ROWS, results.ROWS, aggregates.ROWS, methods.ROWS, writes.ROWS)
ROWS: dict[str, Row] = {name: row for table in TABLES for name, row in table.items()}


@pytest.mark.parametrize("name", ROWS)
def test_way_out_gives_djangos_result(shops: tuple[Shop, Shop], name: str) -> None:
    row = ROWS[name]
    ours, theirs = shops
    with pytest.raises(KINDS) as refused:
        evaluated(row.ask, ours)
    assert row.says in str(refused.value)
    assert told(row.followed(ours)) == told(row.expected(theirs))


def test_every_refusal_has_a_row_or_a_reason(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    with made() as found:
        for row in ROWS.values():
            with suppress(*KINDS):
                evaluated(row.ask, ours)
    left = [
        each.name
        for each in places()
        if each.name not in found and each.name not in REASONS and not each.file.startswith(tuple(ELSEWHERE))
    ]
    assert "\n".join(left) == ""


def test_every_reason_is_of_a_refusal() -> None:
    """A reason without a place, or with a row by now, is removed."""
    assert REASONS.keys() <= {each.name for each in places()}
    assert all(any(each.file.startswith(folder) for each in places()) for folder in ELSEWHERE)


def test_no_two_rows_have_one_name() -> None:
    """A hidden row would not be tested."""
    assert len(ROWS) == sum(map(len, TABLES))
