"""Declarations of copies, counters and authors, and their system checks."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema import registry
from tests.catalog.boards import Board
from tests.catalog.chat import ChatMembership, ChatServer, ChatUser
from tests.unit.declaring import declare, forgotten, messages

BY_USER = {"by_user": models.IndexKey("gs1", "PARTS#{user_id}", "{part_id}")}


def part(*, keys: dict[str, Any] | None = None, **attributes: Any) -> Any:
    """A model that refers to a user."""
    return declare(
        "Part",
        ("PART#{part_id}", "#METADATA"),
        BY_USER if keys is None else keys,
        part_id=models.IdAttribute(),
        user=models.ReferenceAttribute(ChatUser, on_delete=models.DO_NOTHING),
        **attributes,
    )


def test_a_copy_has_its_sources_type() -> None:
    """In the item, in keys and in lookups; it is neither edited nor put into fixtures."""
    copy = registry.attributes_of(ChatMembership)["username"]
    field = ChatMembership._meta.get_field("username")
    assert (copy.attr_type, copy.key_kind) == ("S", "text")
    assert (field.editable, field.serialize, field.null) == (False, False, True)
    assert registry.layout_of(ChatMembership).attributes["username"].required


def test_who_copies_and_who_counts_is_known() -> None:
    """From the source's side too."""
    copies = {f"{copy.field.model.__name__}.{copy.name}" for copy in registry.copied_from(ChatUser)}
    assert {"ChatMembership.username", "ChatProfile.username", "ChatProfile.mood"} <= copies
    assert [counter.name for counter in registry.counters_of(ChatServer)] == ["member_count", "channel_count"]


@pytest.mark.parametrize(
    ("copy", "message"),
    [
        (("owner", "username"), "copied along 'owner', which is not a reference of the model"),
        (("part_id", "username"), "copied along 'part_id', which is not a reference of the model"),
        (
            ("user", "nickname"),
            "cannot copy catalog.ChatUser.nickname, which is not an attribute of a model in DynamoDB",
        ),
    ],
)
def test_a_copy_of_nothing_is_refused(copy: tuple[str, str], message: str) -> None:
    """By the names that are wrong, as every key that cannot work."""
    with forgotten():
        model = part(copied=models.CopiedAttribute(*copy))
        with pytest.raises(ConfigurationError) as raised:
            registry.layout_of(model)
        assert message in str(raised.value)
        assert [found[0] for found in messages(model)] == ["dynamo_single.E003"]


def test_a_copy_of_a_copy_is_refused() -> None:
    """The error suggests the original attribute."""
    with forgotten():
        model = declare(
            "Part",
            ("PART#{part_id}", "#METADATA"),
            part_id=models.IdAttribute(),
            membership=models.ReferenceAttribute(ChatMembership, on_delete=models.DO_NOTHING),
            username=models.CopiedAttribute("membership", "username"),
        )
        with pytest.raises(ConfigurationError, match="is kept by the app itself"):
            registry.layout_of(model)


def test_a_copy_of_what_changes_with_every_write_is_refused() -> None:
    """Every save of the source would write all of its copies."""
    with forgotten():
        source = declare(
            "Whole",
            ("WHOLE#{whole_id}", "#METADATA"),
            bases=(models.TimestampedModel,),
            whole_id=models.IdAttribute(),
        )
        model = declare(
            "Part",
            ("PART#{part_id}", "#METADATA"),
            part_id=models.IdAttribute(),
            whole=models.ReferenceAttribute(source, on_delete=models.DO_NOTHING),
            saved_at=models.CopiedAttribute("whole", "updated_at"),
        )
        with pytest.raises(ConfigurationError, match="which changes with every write"):
            registry.layout_of(model)


def test_a_copy_cannot_be_in_the_primary_key() -> None:
    """A primary key never changes."""
    with forgotten():
        model = declare(
            "Part",
            ("PART#{username}", "#METADATA"),
            user=models.ReferenceAttribute(ChatUser, on_delete=models.DO_NOTHING),
            username=models.CopiedAttribute("user", "username"),
        )
        with pytest.raises(ConfigurationError, match="the primary key of an object never changes"):
            registry.layout_of(model)


def test_holders_have_to_be_found_by_a_key() -> None:
    """E015 names the missing key; a key that omits some objects is not enough."""
    with forgotten():
        (found,) = messages(part(keys={}, username=models.CopiedAttribute("user", "username")))
        assert found[0] == "dynamo_single.E015"
        assert found[1].startswith("username is copied from user.username, but no key finds the objects")
    with forgotten():
        assert messages(part(username=models.CopiedAttribute("user", "username"))) == []


@pytest.mark.parametrize(
    ("counted", "message"),
    [
        ({"how_many": models.CounterAttribute("things")}, "the model has no such Children"),
        (
            {"how_many": models.CounterAttribute("things"), "things": models.Children("Part")},
            "catalog.Part objects expire",
        ),
    ],
)
def test_a_counter_of_what_cannot_be_counted_is_refused(counted: dict[str, Any], message: str) -> None:
    """E016 contains the reason."""
    with forgotten():
        model = declare("Whole", ("WHOLE#{whole_id}", "#METADATA"), whole_id=models.IdAttribute(), **counted)
        declare(
            "Part",
            ("WHOLE#{whole_id}", "PART#{part_id}"),
            whole=models.ReferenceAttribute(model, on_delete=models.DO_NOTHING),
            part_id=models.IdAttribute(),
            expires_at=models.TTLAttribute(),
        )
        assert [found[0] for found in messages(model)] == ["dynamo_single.E016"]
        assert message in messages(model)[0][1]


def test_what_follows_from_another_object_counts_nothing() -> None:
    """Its number would be overwritten when the other object changes."""
    with forgotten():
        model = declare(
            "Whole",
            ("WHOLE#{whole_id}", "#METADATA"),
            whole_id=models.IdAttribute(),
            user=models.ReferenceAttribute(ChatUser, on_delete=models.DO_NOTHING),
            derived_by="user",
            things=models.Children("Part"),
            how_many=models.CounterAttribute("things"),
        )
        declare(
            "Part",
            ("WHOLE#{whole_id}", "PART#{part_id}"),
            whole=models.ReferenceAttribute(model, on_delete=models.DO_NOTHING),
            part_id=models.IdAttribute(),
        )
        ((check, text),) = messages(model)
        assert check == "dynamo_single.E016"
        assert "catalog.Whole objects are derived from others and are rewritten completely" in text


def test_a_counter_cannot_be_in_a_key() -> None:
    """A counter changes without a write of the object."""
    with forgotten():
        model = declare(
            "Whole",
            ("WHOLE#{whole_id}", "#METADATA"),
            {"by_count": models.IndexKey("gs1", "WHOLE", "{how_many}#{whole_id}")},
            whole_id=models.IdAttribute(),
            things=models.Children(Board),
            how_many=models.CounterAttribute("things"),
        )
        with pytest.raises(ConfigurationError, match="which counts without reading or writing the object"):
            registry.layout_of(model)


def test_an_author_is_a_reference_to_the_user_model() -> None:
    """Optional, without a form field, and without a manager on the other side."""

    with forgotten():
        model = declare(
            "Remark", ("THINGNOTE#{note_id}", "#METADATA"), bases=(models.AuthoredModel,), note_id=models.IdAttribute()
        )
        field = model._meta.get_field("created_by")
        assert (field.attname, field.editable, field.null) == ("created_by_id", False, True)
        assert field.attribute.attr_name == "createdBy"
        assert messages(model) == []
