"""Eight PynamoDB classes with the keys and types that PynamoDB's documentation shows, and items that they write.

``connect()`` gives them the endpoint of the tests.
"""

from __future__ import annotations

import datetime as dt
from enum import Enum
from typing import Any

from pynamodb.attributes import (
    BinaryAttribute,
    BinarySetAttribute,
    BooleanAttribute,
    DiscriminatorAttribute,
    JSONAttribute,
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    NumberSetAttribute,
    TTLAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
    UTCDateTimeAttribute,
    VersionAttribute,
)
from pynamodb.indexes import (
    AllProjection,
    GlobalSecondaryIndex,
    IncludeProjection,
    KeysOnlyProjection,
    LocalSecondaryIndex,
)
from pynamodb.models import Model

UTC = dt.UTC


class ByViews(GlobalSecondaryIndex["Thread"]):
    """Threads by a number."""

    class Meta:
        index_name = "by-views"
        projection = AllProjection()

    views = NumberAttribute(default=0, hash_key=True)


class ByLastPost(LocalSecondaryIndex["Thread"]):
    """The threads of a forum by the time of their last post."""

    class Meta:
        index_name = "by-last-post"
        projection = AllProjection()

    forum_name = UnicodeAttribute(hash_key=True)
    last_post = UTCDateTimeAttribute(range_key=True)


class Thread(Model):
    """A key of two strings, a numeric index, and a local index."""

    class Meta:
        table_name = "adopted-thread"

    forum_name = UnicodeAttribute(hash_key=True)
    subject = UnicodeAttribute(range_key=True)
    views = NumberAttribute(default=0)
    answered = BooleanAttribute(default=False)
    tags = UnicodeSetAttribute(null=True)
    last_post = UTCDateTimeAttribute(null=True)
    by_views = ByViews()
    by_last_post = ByLastPost()


class User(Model):
    """A partition key alone."""

    class Meta:
        table_name = "adopted-user"

    email = UnicodeAttribute(hash_key=True)
    first_name = UnicodeAttribute(null=True)
    last_name = UnicodeAttribute(null=True, attr_name="lastName")
    notes = JSONAttribute(null=True)


class ByWinner(GlobalSecondaryIndex["Game"]):
    """Keys only, under a name of its own."""

    class Meta:
        index_name = "winner-index"
        projection = KeysOnlyProjection()

    winner_id = UnicodeAttribute(hash_key=True)
    created_time = UTCDateTimeAttribute(range_key=True)


class Game(Model):
    """A datetime as sort key."""

    class Meta:
        table_name = "adopted-game"

    player_id = UnicodeAttribute(hash_key=True)
    created_time = UTCDateTimeAttribute(range_key=True)
    winner_id = UnicodeAttribute(null=True)
    points = NumberSetAttribute(null=True)
    by_winner = ByWinner()


class Address(MapAttribute[str, Any]):
    """A typed map."""

    street = UnicodeAttribute()
    number = NumberAttribute(null=True)


class Employee(MapAttribute[str, Any]):
    """A typed map in a list, with another map in it."""

    name = UnicodeAttribute()
    office_address = Address(attr_name="officeAddress", null=True)


class Office(Model):
    """Documents."""

    class Meta:
        table_name = "adopted-office"

    office_id = UnicodeAttribute(hash_key=True)
    address = Address()
    employees = ListAttribute(of=Employee)
    free = MapAttribute(null=True)


class Statement(Model):
    """A number as sort key."""

    class Meta:
        table_name = "adopted-statement"

    user_id = UnicodeAttribute(hash_key=True)
    number = NumberAttribute(range_key=True)
    balance = NumberAttribute(default=0)
    is_active = BooleanAttribute()


class Document(Model):
    """A version that counts the writes, and an expiry."""

    class Meta:
        table_name = "adopted-document"

    document_id = UnicodeAttribute(hash_key=True)
    title = UnicodeAttribute()
    expires = TTLAttribute(null=True, attr_name="ttl")
    version = VersionAttribute()


class Animal(Model):
    """Classes with a discriminator."""

    class Meta:
        table_name = "adopted-animal"

    animal_id = UnicodeAttribute(hash_key=True)
    cls = DiscriminatorAttribute()


class Cat(Animal, discriminator="Cat"):
    """One of them."""

    lives = NumberAttribute()


class Dog(Animal, discriminator="Dog"):
    """The other one."""

    tricks = UnicodeSetAttribute(null=True)


class Color(Enum):
    """The values of an attribute class of a project."""

    RED = "red"


class ColorAttribute(UnicodeAttribute):
    """An attribute class of a project."""

    def serialize(self, value: Any) -> str:
        """Store the value."""
        return str(value.value)

    def deserialize(self, value: str) -> Any:
        """Read the member."""
        return Color(value)


class ByColor(GlobalSecondaryIndex["Blob"]):
    """An index that includes an attribute."""

    class Meta:
        index_name = "by-color"
        projection = IncludeProjection(["label"])

    color = ColorAttribute(hash_key=True)


class Blob(Model):
    """A binary key, and an attribute class of a project."""

    class Meta:
        table_name = "adopted-blob"

    digest = BinaryAttribute(hash_key=True, legacy_encoding=False)
    content = BinaryAttribute(legacy_encoding=False, null=True)
    old_content = BinaryAttribute(legacy_encoding=True, null=True)
    parts = BinarySetAttribute(legacy_encoding=False, null=True)
    color = ColorAttribute(null=True)
    label = UnicodeAttribute(null=True)
    by_color = ByColor()


CLASSES: tuple[type[Model], ...] = (Thread, User, Game, Office, Statement, Document, Animal, Blob)


def objects(model: type[Model]) -> list[Model]:
    """Return new objects of a class with critical values: empty, missing, with separators, extreme."""
    at = dt.datetime(2024, 5, 1, 12, 30, 15, 123456, UTC)
    found: dict[type[Model], list[Model]] = {
        Thread: [
            Thread(
                f"Forum {n % 2}",
                f"How to #{n}?",
                views=n % 3,
                tags={"a b", "#"} if n else None,
                last_post=at + dt.timedelta(n),
            )
            for n in range(6)
        ],
        User: [
            User("a@example.com", first_name="", last_name="Ä|#$", notes={"b": [1, None, 2.5], "a": ""}),
            User("b@example.com"),
            User("c#d@example.com", first_name="Æ", notes=[]),
        ],
        Game: [
            Game(f"p{n % 2}", at + dt.timedelta(hours=n), winner_id=f"p{n % 3}" if n % 4 else None, points={n, 0.5})
            for n in range(6)
        ],
        Office: [
            Office(
                "o1",
                address=Address(street="Main #1", number=-3),
                employees=[Employee(name="Ada", office_address=Address(street=""))],
            ),
            Office("o2", address=Address(street="x"), employees=[], free={"any": {"depth": [1, "a", None, True]}}),
        ],
        Statement: [
            Statement(f"u{n % 2}", number, balance=number / 4, is_active=bool(n % 2))
            for n, number in enumerate((-5, 0, 3, 10, 200, 10**20))
        ],
        Document: [
            Document(f"d{n}", title=f"#{n}", expires=dt.datetime(2090, 1, 1, tzinfo=UTC) if n else None)
            for n in range(3)
        ],
        Animal: [Cat("a1", lives=9), Dog("a2", tricks={"sit"}), Dog("a3")],
        Blob: [
            Blob(
                b"\x00\xff", content=b"\x00", old_content=b"old\xff", parts={b"a", b"\x00"}, color=Color.RED, label="x"
            ),
            Blob(b"\x01"),
        ],
    }
    return found[model]


def connect(host: str) -> None:
    """Let the classes use an endpoint, with credentials that are none."""
    for model in (*CLASSES, Cat, Dog):
        meta: Any = model.Meta
        meta.host, meta.region = host, "us-east-1"
        meta.aws_access_key_id, meta.aws_secret_access_key = "none", "none"
        meta.billing_mode = "PAY_PER_REQUEST"
        model._connection = None
