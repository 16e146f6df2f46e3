"""W911: a partition that differs from a referenced object's only in the format of a value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dynamo_single import models
from tests.unit.declaring import declare, forgotten, messages


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    with forgotten():
        yield


def task(own: str, parents: str = "T#{tenant}#P#{code:08d}") -> Any:
    """A task in one partition, of a project in another."""
    named = {name: made() for name, made in VALUES.items() if f"{{{name}" in parents}
    project = declare("Quarry", (parents, "#PROJECT"), **named)
    return declare(
        "Errand",
        (own, "TASK#{number}"),
        number=models.IntegerAttribute(),
        project=models.ReferenceAttribute(project, on_delete=models.DO_NOTHING),
    )


VALUES: dict[str, Any] = {"tenant": models.UnicodeAttribute, "code": models.IntegerAttribute}


@pytest.mark.parametrize(
    ("own", "parents"),
    [
        ("T#{project.tenant}#P#{project.code}", "T#{tenant}#P#{code:08d}"),
        ("T#{project.tenant}#P#{project.code:08d}", "T#{tenant}#P#{code}"),
        ("T#{project.tenant}#P#{project.code:06d}", "T#{tenant}#P#{code:08d}"),
        ("T#{project.tenant:canonical}#P#{project.code}", "T#{tenant}#P#{code}"),
        ("P#{project_id}", "P#{code:08d}"),
        ("P#{project.code}", "P#{code:08d}"),
    ],
)
def test_another_format_of_the_same_value_is_reported(own: str, parents: str) -> None:
    """Each way to miss the parent's partition by a format alone has the check's id."""
    assert [id for id, _ in messages(task(own, parents))] == ["dynamo_single.W911"]


def test_the_message_names_both_partitions() -> None:
    """It contains both compared templates, and the effect."""
    assert messages(task("T#{project.tenant}#P#{project.code}"))[0][1] == (
        "The partition 'T#{project.tenant}#P#{project.code}' is not that of catalog.Quarry, "
        "'T#{tenant}#P#{code:08d}': the formats differ, so objects of catalog.Errand are not stored next to their "
        "project."
    )


@pytest.mark.parametrize(
    ("own", "parents"),
    [
        ("T#{project.tenant}#P#{project.code:08d}", "T#{tenant}#P#{code:08d}"),
        ("P#{project_id:08d}", "P#{code:08d}"),
        ("T#{project.tenant}#TASKS#{project.code}", "T#{tenant}#P#{code:08d}"),
        ("T#{project.tenant}", "T#{tenant}#P#{code:08d}"),
        ("P#{project_id}", "T#{tenant}#P#{code:08d}"),
    ],
)
def test_the_same_partition_and_one_of_their_own_are_fine(own: str, parents: str) -> None:
    """A template that equals the parent's, or differs in more than a format, is intended."""
    assert messages(task(own, parents)) == []


def note(own: str) -> Any:
    """Return a note of a task, in its project's partition."""
    made = task("T#{project.tenant}#P#{project.code:08d}")
    return declare(
        "Jotting",
        (own, "NOTE#{note_id}"),
        note_id=models.IdAttribute(),
        task=models.ReferenceAttribute(made, on_delete=models.DO_NOTHING),
    )


def test_a_child_of_a_child_is_compared_with_its_own_parent() -> None:
    """The path leads through the parent's reference."""
    assert [id for id, _ in messages(note("T#{task.project.tenant}#P#{task.project.code}"))] == ["dynamo_single.W911"]


def test_a_child_of_a_child_in_the_same_partition_is_fine() -> None:
    """The formats are those of the first parent."""
    assert messages(note("T#{task.project.tenant}#P#{task.project.code:08d}")) == []
