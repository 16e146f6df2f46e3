"""A ``migrate`` that ends at any request continues in the next run, with the same result."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dynamo_single import models
from dynamo_single.contrib.doctor import verify
from dynamo_single.evolution.forms import form_of
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.rollout.states import StoredForm
from dynamo_single.table import Request, Table, intercept
from dynamo_single.table.flow import run
from tests.histories.app import Beginning, History, history


class Killed(BaseException):
    """The end of a process, which error handlers do not catch."""


@contextmanager
def killed_at(number: int) -> Iterator[None]:
    """Within the block, the process ends before the request with this number."""
    sent = 0
    lock = threading.Lock()

    def count(operation: str, params: Any) -> None:
        nonlocal sent
        with lock:
            sent += 1
            if sent >= number:
                raise Killed

    with intercept(count), pytest.raises(Killed):
        yield


def shop(app: History, **attributes: Any) -> Any:
    """Return the new declaration of the model."""
    return app.model(bases=(models.SoftDeleteModel,), **attributes)


def declared(app: History) -> Any:
    """The model after the second migration."""
    return shop(
        app,
        keys={"by_name": models.IndexKey("gs1", "SHOP", "{name}")},
        name=models.UnicodeAttribute(unique=True),
        size=models.IntegerAttribute(null=True),
        town=models.TimestampAttribute(null=True),
        qty=models.IntegerAttribute(default=1),
    )


def form_now(table: Table) -> StoredForm:
    """Return the model's state in the table, without its required migrations."""
    return replace(run(knowledge.state_of(table)).forms["Shop"], required={}, changed={})


@Beginning
def begin(app: History) -> None:
    """The first migration, three shops after it, one of them in the trash, and the file of the second migration."""
    old = shop(
        app,
        name=models.UnicodeAttribute(),
        gone=models.UnicodeAttribute(null=True),
        size=models.UnicodeAttribute(null=True),
    )
    app.make()
    app.migrate()
    for name in "abc":
        old.objects.create(shop_id=name, name=name.upper(), gone="x", size="7")
    old.objects.get(shop_id="c").delete()
    declared(app)
    app.make()


@pytest.mark.parametrize("number", [1, 6, 13, 22, 30, 38, 47, 60])
def test_a_killed_migration_goes_on(tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """This includes a key, a default, a unique rule, a removed attribute, and a converted value."""
    monkeypatch.setattr(knowledge, "LOCAL_LEASE", 0.05)
    with history(tmp_path) as app:
        begin(app)
        new = declared(app)
        with killed_at(number):
            app.migrate("--segments", "1")
        app.migrate("--segments", "1")
        assert [(each.name, each.size, each.qty) for each in new.objects.order_by("name")] == [("A", 7, 1), ("B", 7, 1)]
        assert [each.name for each in new.deleted_objects.all()] == ["C"]
        items = table.send(Request("Scan"))["Items"]
        assert [each["pk"]["S"] for each in items if "gone" in each] == []
        assert form_now(table) == form_of(Snapshot.of(new), "histories.shop")
        assert list(verify()) == []
