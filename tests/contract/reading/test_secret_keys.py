"""Messages never contain keys with secrets: each of these errors names an item or an object."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dynamo_single import counters, models, transactions
from dynamo_single.orm.requests.actions import Put, Update
from dynamo_single.orm.requests.compiler import compile_action, compile_transaction, item_key
from dynamo_single.table import Table
from tests.catalog.safes import told
from tests.contract.tables import everything
from tests.other_names import typed
from tests.unit.declaring import declare, forgotten

CODE = "swordfish"
OTHER = "swordfish-other"


class Vaults:
    """Vaults with a secret in the key, their drawers and counts, and one stored vault of each kind."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.vault = declare(
            "Vault",
            ("VAULT#{code}", "#METADATA"),
            {"by_name": models.IndexKey("gs1", "VAULT", "{name}")},
            code=models.UnicodeAttribute(secret=True),
            name=models.UnicodeAttribute(),
            badge=models.UnicodeAttribute(unique=True, null=True),
            number=models.IntegerAttribute(default=0),
            drawers=models.Children("Drawer"),
            drawer_count=models.CounterAttribute("drawers"),
        )
        self.drawer = declare(
            "Drawer",
            ("VAULT#{vault_id}", "DRAWER#{drawer_id}"),
            vault=models.ReferenceAttribute(self.vault, on_delete=models.PROTECT),
            drawer_id=models.UnicodeAttribute(secret=True),
        )
        self.tally = declare(
            "Tally",
            ("TALLY#{code}", "#METADATA"),
            code=models.UnicodeAttribute(secret=True),
            number=models.IntegerAttribute(default=0),
            text=models.UnicodeAttribute(null=True),
        )

    def stored(self, code: str = CODE, **values: Any) -> Any:
        """Return a stored vault with a drawer."""
        vault = self.vault.objects.create(code=code, name="Main", badge=code[-1], **values)
        self.drawer.objects.create(vault=vault, drawer_id=f"{code}-1")
        return self.vault.objects.get(pk=code)

    def change(self, pk: str, sk: str, **values: str) -> None:
        """Write strings into an item like another program."""
        item = everything(self.table)[pk, sk] | {name: {"S": value} for name, value in values.items()}
        self.table.call("PutItem", {"TableName": self.table.name, "Item": item})


@pytest.fixture
def vaults(table: Table) -> Iterator[Vaults]:
    with forgotten():
        yield Vaults(table)


def missing_reference(vaults: Vaults) -> None:
    vaults.drawer.objects.create(vault_id=CODE, drawer_id=CODE)


def written_twice_in_block(vaults: Vaults) -> None:
    first, second = vaults.stored(), vaults.vault.objects.get(pk=CODE)
    first.name, second.name = "North", "South"
    with transactions.atomic():
        first.save()
        second.save()


def read_in_block(vaults: Vaults) -> None:
    vault = vaults.stored()
    with transactions.atomic():
        vaults.drawer.objects.create(vault=vault, drawer_id=OTHER)
        vaults.vault.objects.get(pk=CODE)


def too_large(vaults: Vaults) -> None:
    tally = vaults.tally.objects.create(code=CODE)
    tally.text = "x" * 500_000
    tally.save()


def too_large_item(vaults: Vaults) -> None:
    compile_action(Put({**item_key((f"VAULT#{CODE}", "#METADATA")), "name": {"S": "x" * 500_000}}))


def empty_update(vaults: Vaults) -> None:
    compile_action(Update((f"VAULT#{CODE}", "#METADATA")))


def long_update(vaults: Vaults) -> None:
    compile_action(Update((f"VAULT#{CODE}", "#METADATA"), {f"name{number}": {"S": ""} for number in range(400)}))


def one_item_twice(vaults: Vaults) -> None:
    compile_transaction([Put(item_key((f"VAULT#{CODE}", "#METADATA")))] * 2, "table", "token")


def outdated_key(vaults: Vaults) -> None:
    vaults.stored()
    vaults.change(f"VAULT#{CODE}", "#METADATA", code=OTHER)
    vault = vaults.vault.objects.get(pk=CODE)
    vault.name = "North"
    vault.save()


def other_type(vaults: Vaults) -> None:
    vaults.stored()
    vaults.change(f"VAULT#{CODE}", "#METADATA", itemType="Other")
    vaults.vault.objects.get(pk=CODE)


def wrong_claim(vaults: Vaults) -> None:
    vaults.stored()
    (claim,) = (key for key in everything(vaults.table) if key[0].startswith("UNIQUE#"))
    vaults.change(*claim, ownerPk=f"VAULT#{OTHER}")
    vaults.vault.objects.get(badge=CODE[-1])


def created_twice(vaults: Vaults) -> None:
    vaults.tally.objects.bulk_create([vaults.tally(code=CODE), vaults.tally(code=CODE)])


def one_badge_twice(vaults: Vaults) -> None:
    vaults.vault.objects.bulk_create([vaults.vault(code=code, name="Main", badge="1") for code in (CODE, OTHER)])


def updated_twice(vaults: Vaults) -> None:
    vault = vaults.stored()
    vaults.vault.objects.bulk_update([vault, vaults.vault.objects.get(pk=CODE)], ["name"])


def badge_handed_over(vaults: Vaults) -> None:
    one, other = vaults.stored(), vaults.stored(OTHER)
    one.badge, other.badge = other.badge, "9"
    vaults.vault.objects.bulk_update([one, other], ["badge"])


def gone(vaults: Vaults) -> None:
    tally = vaults.tally.objects.create(code=CODE)
    vaults.tally.objects.filter(pk=CODE).delete()
    tally.refresh_from_db()


def counted_past(vaults: Vaults) -> None:
    vaults.tally.objects.create(code=CODE, number=5)
    counters.add(vaults.tally(code=CODE, number=1), "number", at_most=5)


def protected(vaults: Vaults) -> None:
    vaults.stored().delete()


def moved(vaults: Vaults) -> None:
    vaults.stored().move(code=OTHER)


def one_of_several_fails(vaults: Vaults) -> None:
    vaults.stored()
    vaults.drawer.objects.bulk_create([vaults.drawer(vault_id=code, drawer_id="2") for code in (CODE, OTHER)])


def required_and_written(vaults: Vaults) -> None:
    tally = vaults.tally.objects.create(code=CODE)
    with transactions.atomic():
        transactions.require(tally)
        vaults.tally.objects.bulk_create([vaults.tally(code=CODE)])


#: Calls, and a part of each error.
REFUSED: dict[Callable[[Vaults], None], str] = {
    missing_reference: "an object that is not stored, pk='VAULT#•••', sk='#METADATA'",
    written_twice_in_block: "cannot be written in this block",
    read_in_block: "and with it the item pk='VAULT#•••', sk='#METADATA'",
    too_large: "catalog.Tally with pk ••• would have 500",
    too_large_item: "The item pk='VAULT#•••', sk='#METADATA' has 500",
    empty_update: "The update of pk='VAULT#•••', sk='#METADATA' does not change the item",
    long_update: "The update of pk='VAULT#•••', sk='#METADATA' changes 400 places",
    one_item_twice: "one item twice: pk='VAULT#•••', sk='#METADATA'",
    outdated_key: "stored under pk='VAULT#•••', sk='#METADATA', but the model's primary key is now pk='VAULT#•••'",
    other_type: "The item pk='VAULT#•••', sk='#METADATA' has itemType 'Other'",
    wrong_claim: "names the object pk='VAULT#•••', sk='#METADATA', which does not hold it",
    created_twice: "got two catalog.Tally objects with pk •••",
    one_badge_twice: "with badge '1': pk ••• and •••",
    updated_twice: "got two objects with pk •••",
    badge_handed_over: "of the catalog.Vault with pk ••• to the object with pk •••",
    gone: "catalog.Tally with pk ••• is not stored",
    counted_past: "catalog.Tally with pk ••• would count past 5",
    protected: "for example pk •••",
    moved: "catalog.Vault with pk ••• cannot move",
    one_of_several_fails: "failed at pk •••: catalog.Drawer with pk ••• is counted by an object that is not stored",
    required_and_written: "in this block: catalog.Tally with pk ••• is written in it",
}


@pytest.mark.parametrize(
    "call",
    [pytest.param(call, marks=typed if call is other_type else []) for call in REFUSED],
    ids=lambda call: call.__name__,
)
def test_refusal_masks_key_of_secret(vaults: Vaults, call: Callable[[Vaults], None]) -> None:
    with pytest.raises(Exception) as refused:
        call(vaults)
    lines = traceback.format_exception(refused.value)
    text = "".join(line for line in lines if not line.lstrip().startswith("File "))

    assert REFUSED[call] in text
    assert told(text) == []
