"""Imports for typing alone: those that run upwards are the listed ones, and a wrong list is noticed."""

from __future__ import annotations

import pytest

from tests.typing_imports import UPWARDS, contracts, mistakes


def test_the_list_is_right() -> None:
    """No other import for typing runs upwards, and each of these does."""
    assert mistakes(UPWARDS) == []


@pytest.mark.parametrize("number", range(len(UPWARDS)))
def test_an_import_that_is_not_listed_is_found(number: int) -> None:
    """By the contract that it breaks."""
    (found,) = mistakes(UPWARDS[:number] + UPWARDS[number + 1 :])
    importer, _, imported = UPWARDS[number].partition(" -> ")
    assert "BROKEN" in found
    assert importer in found
    assert imported in found


def test_an_import_that_need_not_be_listed_is_found() -> None:
    """One that runs downwards."""
    downwards = "dynamo_single.keys -> dynamo_single.orm.schema.keys.template"
    (found,) = mistakes([*UPWARDS, downwards])
    assert downwards in found


def test_an_import_that_is_gone_is_found() -> None:
    """One that nothing imports any more."""
    (found,) = mistakes([*UPWARDS, "dynamo_single.keys -> dynamo_single.models"])
    assert "No matches for ignored import dynamo_single.keys -> dynamo_single.models" in " ".join(found.split())


def test_the_contracts_are_those_of_the_project() -> None:
    """Apart from what is ignored, so that there is one copy of them."""
    assert "exclude_type_checking_imports = false" in contracts([])
    assert contracts([]).count("[[tool.importlinter.contracts]]") > 5
