"""Verification and repair of an adopted table and of its companion."""

from __future__ import annotations

import pytest

from dynamo_single.contrib.doctor import verify
from dynamo_single.contrib.doctor.walk import examine, repair
from dynamo_single.table import Request, Table, get_table
from tests.contract.adoption.conftest import ADOPTED, types
from tests.contract.adoption.test_companion_claims import CLAIM, person

KEY = {"pk": {"S": CLAIM[0]}, "sk": {"S": CLAIM[1]}}


@pytest.fixture
def claimed(adopted: Table) -> Table:
    """The adopted table with a person and her claim."""
    person().objects.create(name="ann", email="ann@example.com")
    return adopted


@pytest.mark.parametrize("alias", [ADOPTED, "default"])
def test_claims_in_a_companion_are_consistent(claimed: Table, alias: str) -> None:
    assert [str(each) for each in verify(alias)] == []


def test_examined_companion_skips_claims_of_others(claimed: Table) -> None:
    found = examine(get_table(), limit=10)

    assert (dict(found.items), found.findings) == ({}, ())


def test_missing_claim_is_repaired_in_the_companion(claimed: Table) -> None:
    get_table().send(Request("DeleteItem", {"Key": KEY}))

    (finding,) = verify(ADOPTED)
    assert (finding.kind, repair(finding, ADOPTED)) == ("missing claim", True)

    assert types(get_table()) == {"UniqueClaim": 1}
    assert [*verify(ADOPTED)] == []


def test_orphan_claim_is_deleted_from_the_companion(adopted: Table) -> None:
    claim = {**KEY, "itemType": {"S": "UniqueClaim"}, "ownerPk": {"S": "PERSON#ann"}, "ownerSk": {"S": "#METADATA"}}
    get_table().send(Request("PutItem", {"Item": claim}))
    person()

    (finding,) = verify(ADOPTED)
    assert (finding.kind, repair(finding, ADOPTED)) == ("orphan claim", True)

    assert types(get_table()) == {}


def test_items_of_other_programs_are_no_finding(adopted: Table) -> None:
    key = {"pk": {"S": "theirs"}, "sk": {"S": "theirs"}}
    adopted.send(Request("PutItem", {"Item": {**key, "itemType": {"S": "Theirs"}}}))

    assert [*verify(ADOPTED)] == []
