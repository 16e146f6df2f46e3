"""``dynamo_inspect --model`` on PynamoDB classes."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from pynamodb.models import Model

from dynamo_single.testing import assert_requests
from tests.contract.adoption import pynamodb_classes as classes
from tests.unit.inspection.tables import primary_keys

PATH = "tests.contract.adoption.pynamodb_classes"


def described(name: str) -> str:
    """Return the source for a class without a request."""
    out = StringIO()
    with assert_requests([]):
        call_command("dynamo_inspect", model=f"{PATH}.{name}", stdout=out)
    compile(out.getvalue(), "models.py", "exec")
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Thread", ("{forum_name}", "{subject}")),
        ("User", ("{email}",)),
        ("Game", ("{player_id}", "{created_time}")),
        ("Office", ("{office_id}",)),
        ("Statement", ("{user_id}", "{number}")),
        ("Document", ("{document_id}",)),
        ("Animal", ("{animal_id}",)),
        ("Blob", ("{digest}",)),
    ],
)
def test_keys_are_attributes(name: str, expected: tuple[str, ...]) -> None:
    """``hash_key`` and ``range_key`` are the primary key."""
    assert primary_keys(described(name)) == {name: expected}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("Thread", '"by_views": {"name": "by-views", "partition": "views:N"}'),
        ("Thread", '"name": "by-last-post", "partition": "forum_name", "sort": "last_post", "local": True'),
        ("Thread", "tags = models.UnicodeSetAttribute(null=True)"),
        ("Thread", "answered = models.BooleanAttribute(default=False)"),
        ("Thread", 'last_post = models.TimestampAttribute(stored_as="pynamodb", null=True)'),
        ("Thread", "views = models.NumberAttribute(default=0)  # IntegerAttribute() if it has only integers"),
        ("User", 'last_name = models.UnicodeAttribute(null=True, attr_name="lastName")'),
        ("User", 'notes = models.JSONAttribute(stored_as="text", null=True)'),
        ("User", '"SORT_KEY": None'),
        ("Game", '"partition": "winner_id", "sort": "created_time", "projection": "KEYS_ONLY"'),
        ("Office", "class Employee(models.MapAttribute):\n    name = models.UnicodeAttribute()\n"),
        ("Office", 'office_address = Address(null=True, attr_name="officeAddress")'),
        ("Office", "employees = models.ListAttribute(of=Employee)"),
        ("Office", "free = models.MapAttribute(null=True)"),
        ("Statement", '"SORT_KEY": "number:N"'),
        ("Document", '"TTL_ATTRIBUTE": "ttl"'),
        ("Document", "expires = models.TTLAttribute(null=True)"),
        ("Document", "version = models.VersionAttribute()"),
        ("Animal", "cls = models.UnicodeAttribute(null=True)  # PynamoDB's discriminator"),
        ("Animal", "lives = models.NumberAttribute(null=True)  # only Cat declares it"),
        ("Blob", '"PARTITION_KEY": "digest:B"'),
        ("Blob", '"projection": ["label"]'),
        ("Blob", 'old_content = models.BinaryAttribute(stored_as="base64", null=True)'),
        ("Blob", "# ColorAttribute may convert the value: compare its serialize() and deserialize()"),
    ],
)
def test_declarations_are_translated(name: str, line: str) -> None:
    """Each option of PynamoDB has a line of settings or of the model."""
    assert line in described(name)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no.such.module.Thread", "Cannot import 'no.such.module.Thread'"),
        (f"{PATH}.Color", "is not a PynamoDB class with a Meta"),
        ("project.directory.models.Company", "is a model of dynamo_single already"),
    ],
)
def test_other_classes_are_refused(path: str, message: str) -> None:
    """The message names a path that works."""
    with pytest.raises(CommandError, match=message):
        call_command("dynamo_inspect", model=path)


def test_model_and_table_exclude_each_other() -> None:
    """Only one of them is allowed."""
    with pytest.raises(CommandError, match="omit the table"):
        call_command("dynamo_inspect", "orders", model=f"{PATH}.Thread")


def test_every_class_has_objects() -> None:
    """A class without an object would be compared with nothing."""
    assert all(isinstance(each, Model) for model in classes.CLASSES for each in classes.objects(model))
