"""The secrets of a model: by option, by derivation and by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db.models import Q

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema import secrecy
from tests.unit.declaring import declare, forgotten


class Places:
    """A map with declared places."""

    door = models.UnicodeAttribute(secret=True, null=True)
    token = models.UnicodeAttribute(secret=False, null=True)
    plain = models.UnicodeAttribute(null=True)


@pytest.fixture
def vaults() -> Iterator[Any]:
    """Return a model with all kinds of secrets, and a model that refers to it."""
    with forgotten():
        owner = declare(
            "VaultOwner",
            ("VAULTOWNER#{door_code}", "#METADATA"),
            door_code=models.UnicodeAttribute(secret=True),
            closed=models.Children("Vault"),
            closed_count=models.CounterAttribute("closed", condition=Q(phrase="x")),
            all_count=models.CounterAttribute("closed"),
        )
        vault = declare(
            "Vault",
            ("VAULT#{vault_id}", "#METADATA"),
            {"by_owner": models.IndexKey("gs1", "VAULT#{owner_id}", "{vault_id}")},
            vault_id=models.UnicodeAttribute(),
            owner=models.ReferenceAttribute(owner, on_delete=models.DO_NOTHING),
            phrase=models.UnicodeAttribute(secret=True, attr_name="ph"),
            folded=models.CanonicalAttribute(source="phrase"),
            password_hint=models.UnicodeAttribute(secret=False),
            title=models.UnicodeAttribute(attr_name="userPassword"),
            papers=models.MapAttribute(null=True),
            declared=models.MapAttribute(schema=Places, null=True),
            drawn=models.ExtractedAttribute("papers__token"),
            drawn_too=models.ExtractedAttribute("papers__author"),
            opened=models.ExtractedAttribute("papers__token", secret=False),
            copied=models.CopiedAttribute("owner", "door_code"),
            named=models.UnicodeAttribute(null=True),
        )
        yield owner, vault


def test_option_copies_references_and_names_decide(vaults: Any) -> None:
    owner, vault = vaults

    assert secrecy.secrets_of(vault) == {"owner_id", "phrase", "folded", "title", "drawn", "copied"}
    assert secrecy.secrets_of(owner) == {"door_code", "closed_count"}


def test_site_adds_copies_of_what_it_adds(vaults: Any) -> None:
    _owner, vault = vaults

    assert secrecy.secrets_of(vault, lambda model, name: name == "papers") >= {"papers", "drawn", "drawn_too", "opened"}


def test_site_removes_nothing(vaults: Any) -> None:
    _owner, vault = vaults

    assert secrecy.secrets_of(vault, lambda model, name: False) == secrecy.secrets_of(vault)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("phrase", True),
        ("-phrase", True),
        ("ph", True),
        ("phrase__startswith", True),
        ("named__gte", False),
        ("password_hint__gte", False),
        ("owner", True),
        ("owner__closed_count", True),
        ("owner__all_count", True),  # by way of a key that is a secret
        ("papers__author__exact", False),
        ("papers__author__apiKey", True),
        ("papers__0__pin__gte", True),
        ("declared__door__gte", True),
        ("declared__token__gte", False),
        ("declared__plain__gte", False),
        ("declared__pin", True),
        ("pk", False),
        ("unknown_token__gte", True),
        ("unknown__gte", False),
    ],
)
def test_lookup_of_secret_is_known(vaults: Any, path: str, expected: bool) -> None:
    assert secrecy.lookup_hides(vaults[1], path) is expected


def test_key_made_of_secret_is_one(vaults: Any) -> None:
    assert secrecy.lookup_hides(vaults[0], "pk__gte")


def test_children_lead_to_their_secrets(vaults: Any) -> None:
    assert secrecy.lookup_hides(vaults[0], "closed__phrase")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("phrase", "x", "•••"),
        ("phrase", "", ""),
        ("phrase", None, None),
        ("named", "x", "x"),
        ("named", '{"pin": 1}', '{"pin": "•••"}'),
        ("papers", {"token": 1, "a": 2}, {"token": "•••", "a": 2}),
        ("declared", {"token": 1, "door": 2}, {"token": 1, "door": "•••"}),
    ],
)
def test_value_is_read_without_secrets(vaults: Any, name: str, value: object, expected: object) -> None:
    assert secrecy.hide(vaults[1], name, value) == expected


def _attributes() -> Iterator[type]:
    """Every attribute but those whose value the app decides alone."""
    classes = (each for each in vars(models).values() if isinstance(each, type) and issubclass(each, models.Attribute))
    yield from (each for each in classes if not issubclass(each, models.VersionAttribute | models.AuthorAttribute))


def test_option_is_true_or_false() -> None:
    with pytest.raises(ConfigurationError, match=r"secret='yes'\): secret is True or False"):
        models.UnicodeAttribute(secret="yes")  # type: ignore[arg-type]  # as it is written by mistake


@pytest.mark.parametrize("kind", sorted(set(_attributes()), key=str))
def test_attribute_takes_option(kind: Any) -> None:
    arguments: dict[Any, tuple[Any, ...]] = {
        models.ReferenceAttribute: ("catalog.Shop",),
        models.OneToOneAttribute: ("catalog.Shop",),
        models.ExtractedAttribute: ("papers__a",),
        models.CopiedAttribute: ("owner", "name"),
        models.CounterAttribute: ("closed",),
    }
    options = {"source": "name"} if kind is models.CanonicalAttribute else {}

    assert kind(*arguments.get(kind, ()), **options, secret=True).secret is True
