"""Django sees these models: its registry lists them, and the state of migrations renders them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.core import checks
from django.db import models as django_models
from django.db.migrations.state import ModelState, ProjectState
from django.db.models.signals import pre_delete

from dynamo_single import models
from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.model import migration_state
from dynamo_single.orm.schema.fields.base import column_of, relations_from_sql
from project.directory.models import Company, Person
from tests.unit.declaring import declare, forgotten
from tests.unit.factories import in_tens

OURS = [model for model in apps.get_models() if is_stored_in_dynamodb(model)]


def labelled(model: Any) -> str:
    """A model's name in the tests' names."""
    return str(model._meta.label)


@pytest.mark.parametrize("model", [Company, Person], ids=labelled)
def test_the_registry_lists_a_model(model: Any) -> None:
    """``apps.get_models()`` and the app's configuration give it."""
    assert model in apps.get_models()
    assert model in apps.get_app_config("directory").get_models()


def test_no_model_is_a_table_to_django() -> None:
    """No command makes, reads or empties an SQL table for one."""
    assert {model._meta.managed for model in OURS} == {False}
    assert {model._meta.auto_created for model in OURS} == {False}


@pytest.fixture(scope="module")
def rendered() -> Any:
    """Return the models of the migration state with all apps."""
    return ProjectState.from_apps(apps).apps


@pytest.mark.parametrize("group", in_tens(OURS), ids=lambda group: labelled(group[0]))
def test_a_migration_state_renders_a_model(rendered: Any, group: Sequence[Any]) -> None:
    """The model of the state is a plain one with the same fields and the same primary key."""
    for model in group:
        found, fields = rendered.get_model(model._meta.label), [field.name for field in model._meta.local_fields]
        assert found.__bases__ == (django_models.Model,), model
        assert [field.name for field in found._meta.local_fields] == fields, model
        assert found._meta.pk.name == model._meta.pk.name, model
        assert not found._meta.managed, model


def test_a_proxy_is_one_in_the_state_too() -> None:
    """Its base is the model that it stands for, as that is in the state."""
    with forgotten():
        parcel = declare("Parcel", ("PARCEL#{p}", "#X"), p=models.IdAttribute())
        meta = type("Meta", (), {"app_label": "catalog", "proxy": True})
        type(models.Model)("Crate", (parcel,), {"__module__": __name__, "Meta": meta})
        found = ProjectState.from_apps(apps).apps
    assert found.get_model("catalog.Crate").__bases__ == (found.get_model("catalog.Parcel"),)


def test_the_state_of_a_model_with_managers_of_its_own_has_none() -> None:
    """One of our managers would read the table for a foreign class."""
    assert ModelState.from_model(Person).managers == []


def test_an_attribute_may_be_called_objects() -> None:
    """Django then requires another name for the manager, of the model and of its historical class."""
    with forgotten():
        declare(
            "Room", ("ROOM#{r}", "#X"), r=models.IdAttribute(), objects=models.ListAttribute(), rows=models.Manager()
        )
        found = ProjectState.from_apps(apps).apps.get_model("catalog.Room")
    assert found._meta.get_field("objects").name == "objects"


def test_an_app_without_migrations_is_rendered_too() -> None:
    """``migrate`` renders such apps from their classes, without relations."""
    labels = {config.label for config in apps.get_app_configs()}
    assert ProjectState(real_apps=labels).apps.get_model("directory.Person")._meta.pk.name == "identity"


def test_the_state_is_changed_once() -> None:
    """A second start of the app leaves the first wrapper alone."""
    before = ModelState.from_model.__func__  # type: ignore[attr-defined]  # a class method
    migration_state.install()
    assert ModelState.from_model.__func__ is before  # type: ignore[attr-defined]  # as above


def test_no_check_is_reported_twice() -> None:
    """Django calls ``Model.check()`` itself, and our check adds its own messages only."""
    found = checks.run_checks()
    assert len(found) == len(set(map(str, found)))


def test_nothing_is_asked_of_sql_where_there_is_none() -> None:
    """Django's log refers to the user, but deleting a user does not query its rows or call handlers."""
    user = get_user_model()
    assert LogEntry._meta.get_field("user").related_model is user
    assert relations_from_sql(user) == []
    assert not pre_delete.has_listeners(user)


def test_a_migration_knows_no_objects(rendered: Any) -> None:
    """The error for a migration function that queries objects names the alternative."""
    with pytest.raises(NotSupported, match=r"directory\.Company .* exclude\(\).*ChangeItems.*--fake"):
        rendered.get_model("directory.Company").objects.exclude(name="x")


@pytest.mark.parametrize(
    ("attribute", "column"),
    [
        (models.UnicodeAttribute(), "CharField"),
        (models.IdAttribute(), "CharField"),
        (models.SlugAttribute(), "CharField"),
        (models.IntegerAttribute(), "BigIntegerField"),
        (models.UUIDAttribute(), "UUIDField"),
        (models.ReferenceAttribute(Company, on_delete=models.DO_NOTHING), "CharField"),
        (models.ReferenceAttribute("catalog.Ledgered", on_delete=models.DO_NOTHING), "BigIntegerField"),
        (models.NumberAttribute(), None),
        (models.DateAttribute(), None),
        (models.TimestampAttribute(), None),
        (models.IPAddressAttribute(), None),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_the_column_that_refers_to_a_primary_key(attribute: Any, column: str | None) -> None:
    """Each kind of key that an SQL database gives back as it is has one, in the class and in the state."""
    with forgotten():
        key = "k_id" if isinstance(attribute, models.ReferenceAttribute) else "k"
        model = declare("Keyed", (f"KEYED#{{{key}}}", "#X"), k=attribute)
        found = column_of(model._meta.pk)
        in_state = ModelState.from_model(model, exclude_rels=True).fields.get(model._meta.pk.name)
    assert (None if found is None else type(found).__name__) == column
    if column is not None:
        assert type(in_state).__name__ == column
        assert in_state.primary_key
