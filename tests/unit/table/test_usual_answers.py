"""The quick check of a usual response accepts only valid ones, with the same content."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock
from zlib import crc32

import pytest

from dynamo_single.table import answers
from dynamo_single.table.answers import InvalidResponse, ResponseDecoder, TypedResponse

UNITS = {"CapacityUnits": 1.0}
ITEM = {"pk": {"S": "a"}, "n": {"N": "1"}}
#: Bodies that are usual, rare or damaged, in JSON or as they are.
CONTENTS: list[object] = [
    *({"ConsumedCapacity": UNITS, **more} for more in ({}, {"Item": ITEM}, {"Attributes": ITEM}, {"Other": 1})),
    *({"ConsumedCapacity": units} for units in (None, [], [UNITS], {}, 1, "1", {"CapacityUnits": None})),
    *({"ConsumedCapacity": {"CapacityUnits": units}} for units in (0, 2, -1, -0.5, True, "1", [], 1e300)),
    *({"ConsumedCapacity": UNITS, name: wrong} for name in ("Item", "Attributes") for wrong in (None, [], 1, "x", {})),
    *({"ConsumedCapacity": UNITS, name: {"b": {"B": text}}} for name in ("Item", "Attributes") for text in ("YQ==", 1)),
    {"ConsumedCapacity": UNITS, "Item": {"B": {"S": "named as a type"}}},
    {"Item": ITEM},
    {},
    [],
    None,
    "text",
]
BODIES = [json.dumps(content).encode() for content in CONTENTS]
BODIES += [b"", b"{", BODIES[1][:-1], BODIES[1] + b"}", b'{"ConsumedCapacity": "\xff"}', b"[" * 100_000]


def told(read: Any) -> tuple[str, object]:
    """Return the content of a response, or the words of its error."""
    try:
        return "read", read()
    except InvalidResponse as error:
        return "refused", str(error)


@pytest.mark.parametrize("wanted", [{}, {"ReturnValues": "ALL_NEW"}], ids=["nothing", "ALL_NEW"])
@pytest.mark.parametrize("operation", sorted(answers._USUAL))
def test_short_look_reads_as_the_careful_way(operation: str, wanted: dict[str, str]) -> None:
    """Every content, and every refusal in the same words."""
    for body in BODIES:
        head = {"content-type": answers.CONTENT_TYPE + "0", "x-amz-crc32": str(crc32(body))}
        short = told(lambda body=body, head=head: answers.read(operation, wanted, 200, head, body))
        careful = told(lambda body=body: answers._content(operation, wanted, body, capacity=True))
        assert short == careful, body


@pytest.mark.parametrize("operation", sorted(answers._USUAL))
def test_short_look_is_enough_for_usual_answers(operation: str) -> None:
    """With the member and without it, and with a boolean, whose type begins like that of binary values."""
    name = answers._USUAL[operation]
    for more in ({}, {name: ITEM}, {name: {**ITEM, "done": {"BOOL": True}}}):
        content = {"ConsumedCapacity": UNITS, **more}
        assert answers._usual_response(operation, {}, json.dumps(content).encode()) == content


PAGE = {"Items": [ITEM, ITEM], "Count": 2, "ScannedCount": 5, "ConsumedCapacity": UNITS}
#: Members of a page that are rare or damaged; ``...`` leaves the member out.
CHANGES: list[dict[str, object]] = [
    {},
    {"Other": [1]},
    *(
        {name: wrong}
        for name in PAGE
        for wrong in (..., None, -1, True, 1.5, "2", [], {}, [UNITS], {"CapacityUnits": 0})
    ),
    *({"ConsumedCapacity": {"CapacityUnits": units}} for units in (None, -1, True, "1", 2)),
    *({"LastEvaluatedKey": key} for key in (None, {}, [], "x", ITEM, {"b": {"B": "YQ=="}}, {"b": {"B": 1}})),
]


def page_of(params: dict[str, str], operation: str, body: bytes) -> object:
    """Return a page's items and other members, as a decoder reads them."""
    head = {"content-type": answers.CONTENT_TYPE + "0"}
    form = ResponseDecoder(dict[str, dict[str, str]], is_raw=False)
    answer = answers.read(operation, params, 200, head, body, decoder=form)
    return (answer.typed, answer) if isinstance(answer, TypedResponse) else answer


@pytest.mark.parametrize("params", [{}, {"Select": "COUNT"}], ids=["items", "COUNT"])
@pytest.mark.parametrize("operation", ["Query", "Scan"])
def test_short_look_at_a_page_reads_as_the_careful_way(operation: str, params: dict[str, str]) -> None:
    """Every page, and every refusal in the same words."""
    for change in CHANGES:
        content = {name: value for name, value in {**PAGE, **change}.items() if value is not ...}
        body = json.dumps(content).encode()
        short = told(lambda body=body: page_of(params, operation, body))
        with mock.patch.object(answers, "_is_usual_page", return_value=False):
            assert short == told(lambda body=body: page_of(params, operation, body)), content


def test_short_look_is_enough_for_a_last_page() -> None:
    """Its other members are not checked again."""
    with mock.patch.object(answers, "_check_members", side_effect=AssertionError):
        assert page_of({}, "Query", json.dumps(PAGE).encode())
