"""E046: unsupported features of a model that another program saves with PynamoDB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from pynamodb.attributes import NumberAttribute, UnicodeAttribute
from pynamodb.models import Model as PynamoDBModel

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError
from tests.unit.declaring import declare, forgotten, messages

E046 = "dynamo_single.E046"


@pytest.fixture(autouse=True)
def forget_models() -> Iterator[None]:
    """Remove the models that a test declares."""
    with forgotten():
        yield


class Known(PynamoDBModel):
    """The class of the other program."""

    class Meta:
        table_name = "threads"

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    item_type = UnicodeAttribute(attr_name="itemType")
    name = UnicodeAttribute()
    views = NumberAttribute(null=True)


def thread(shared: Any = True, keys: Any = None, bases: tuple[type, ...] = (models.Model,), **attributes: Any) -> Any:
    """Declare a shared model."""
    given = {"name": models.UnicodeAttribute(), **attributes}
    return declare("Thread", ("THREAD#{name}", "#THREAD"), keys, bases=bases, options={"shared": shared}, **given)


def reply(to: Any, **options: Any) -> Any:
    """Declare a model that refers to another one."""
    return declare(
        "Reply",
        ("REPLY#{reply_id}", "#REPLY"),
        {"of_thread": models.IndexKey("gs1", "REPLIES#{thread_id}", "{reply_id}")},
        reply_id=models.IdAttribute(),
        thread=models.ReferenceAttribute(to, on_delete=models.PROTECT, **options),
    )


def counting() -> Any:
    """Declare a shared model that counts others."""
    found = thread(replies=models.Children("catalog.Reply"), number=models.CounterAttribute("replies"))
    reply(found)
    return found


def counted() -> Any:
    """Declare a shared model whose objects another model counts."""
    board = declare(
        "Board",
        ("BOARD#{board_id}", "#BOARD"),
        board_id=models.IdAttribute(),
        threads=models.Children("catalog.Thread"),
        number=models.CounterAttribute("threads"),
    )
    key = models.IndexKey("gs1", "THREADS#{board_id}", "{name}")
    return thread(keys={"of_board": key}, board=models.ReferenceAttribute(board, on_delete=models.PROTECT))


def referred() -> Any:
    """Declare a shared model with checked references to it."""
    found = thread()
    reply(found, checked=True)
    return found


def referring() -> Any:
    """Declare a shared model with a checked reference of its own."""
    board = declare("Board", ("BOARD#{board_id}", "#BOARD"), board_id=models.IdAttribute())
    key = models.IndexKey("gs1", "THREADS#{board_id}", "{name}")
    reference = models.ReferenceAttribute(board, on_delete=models.PROTECT, checked=True)
    return thread(keys={"of_board": key}, board=reference)


def copied() -> Any:
    """Declare a shared model with an attribute that another model copies."""
    found = thread()
    declare(
        "Reply",
        ("REPLY#{reply_id}", "#REPLY"),
        {"of_thread": models.IndexKey("gs1", "REPLIES#{thread_id}", "{reply_id}")},
        reply_id=models.IdAttribute(),
        thread=models.ReferenceAttribute(found, on_delete=models.PROTECT),
        thread_name=models.CopiedAttribute("thread", "name"),
    )
    return found


def copying() -> Any:
    """Declare a shared model that copies an attribute."""
    board = declare(
        "Board", ("BOARD#{board_id}", "#BOARD"), board_id=models.IdAttribute(), title=models.UnicodeAttribute()
    )
    key = models.IndexKey("gs1", "THREADS#{board_id}", "{name}")
    return thread(
        keys={"of_board": key},
        board=models.ReferenceAttribute(board, on_delete=models.PROTECT),
        board_title=models.CopiedAttribute("board", "title"),
    )


UNSAFE: dict[str, tuple[Callable[[], Any], str]] = {
    "unique": (lambda: thread(email=models.UnicodeAttribute(unique=True)), "unique values of email"),
    "trash": (lambda: thread(bases=(models.SoftDeleteModel,)), "soft delete"),
    "counts": (counting, "the counter number"),
    "is counted": (counted, "objects that catalog.Board counts"),
    "checked": (referring, "objects that catalog.Board counts"),
    "referred to": (referred, "the checked reference catalog.Reply.thread"),
    "is copied": (copied, "attributes that catalog.Reply.thread_name copies"),
    "copies": (copying, "the copy board_title"),
    "canonical copy": (
        lambda: thread(folded=models.CanonicalAttribute(source="name")),
        "folded, which is computed from name",
    ),
    "automatic time": (lambda: thread(at=models.TimestampAttribute(auto_now=True)), "at, which only the app sets"),
    "shards": (
        lambda: thread(
            keys={
                "shards": models.Shards("name", at="made"),
                "listed": models.IndexKey("gs1", "THREAD", "{name}", sharded=True),
            },
            made=models.TimestampAttribute(immutable=True),
        ),
        "shards",
    ),
}


@pytest.mark.parametrize("case", UNSAFE)
def test_feature_that_others_break_is_refused(case: str) -> None:
    made, said = UNSAFE[case]

    found = [text for id, text in messages(made()) if id == E046]

    assert len(found) == 1
    assert f"catalog.Thread has Meta.shared and {said}" in found[0]


@pytest.mark.parametrize("case", UNSAFE)
def test_feature_is_allowed_without_sharing(case: str) -> None:
    made, _ = UNSAFE[case]
    found = made()
    found._options = replace(found._options, shared=False)

    assert E046 not in [id for id, _ in messages(found)]


def test_plain_shared_model_is_allowed() -> None:
    found = thread(
        version=models.VersionAttribute(),
        at=models.TimestampAttribute(auto_now=True, null=True),
        views=models.IntegerAttribute(null=True),
    )

    assert messages(found) == []


def test_attributes_of_the_named_class_are_allowed() -> None:
    assert messages(thread(f"{__name__}.Known")) == []


def test_required_attribute_that_the_class_lacks_is_refused() -> None:
    found = messages(thread(f"{__name__}.Known", title=models.UnicodeAttribute(attr_name="heading")))

    assert [id for id, _ in found] == [E046]
    assert "requires 'heading'" in found[0][1]
    assert "test_shared_checks.Known does not declare it" in found[0][1]


def test_optional_attribute_that_the_class_lacks_is_allowed() -> None:
    assert messages(thread(f"{__name__}.Known", title=models.UnicodeAttribute(null=True))) == []


def test_index_keys_that_the_class_lacks_are_refused() -> None:
    found = messages(thread(f"{__name__}.Known", keys={"listed": models.IndexKey("gs1", "THREAD", "{name}")}))

    assert ["requires 'gs1pk'" in found[0][1], "requires 'gs1sk'" in found[1][1]] == [True, True]


@pytest.mark.parametrize("path", ["nowhere.Thread", f"{__name__}.E046"])
def test_path_of_another_object_is_refused(path: str) -> None:
    ((id, said),) = messages(thread(path))

    assert (id, path in said) == (E046, True)


@pytest.mark.parametrize("shared", ["Thread", 1, None])
def test_invalid_option_is_refused(shared: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"Thread\.Meta\.shared is"):
        thread(shared)
