"""The engine's connection: Django's transactions without a database, and the refusal of SQL."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management.color import no_style
from django.db import Error, IntegrityError, NotSupportedError, connection, models, router, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models.sql import compiler as django_compiler
from django.test import override_settings
from pynamodb.models import Model as PynamoDBModel

from dynamo_single.backend import compiler
from dynamo_single.backend.base import Cursor, DatabaseWrapper
from dynamo_single.backend.errors import query_refused
from dynamo_single.backend.router import NoSQLRouter, install_router
from dynamo_single.exceptions import ConfigurationError, NotSupported


class Row(models.Model):
    """A model for an SQL database."""

    name = models.CharField(max_length=20)

    class Meta:
        app_label = "elsewhere"

    def __str__(self) -> str:
        return self.name


class Item(PynamoDBModel):
    """A model that DynamoDB stores."""


def test_callbacks_of_a_failed_inner_block_do_not_run() -> None:
    """A callback runs once the outermost block ends, unless the block that registered it failed."""
    ran: list[str] = []
    with transaction.atomic():
        transaction.on_commit(lambda: ran.append("outer"))
        with pytest.raises(IntegrityError), transaction.atomic():
            transaction.on_commit(lambda: ran.append("failed"))
            raise IntegrityError
        with transaction.atomic():
            transaction.on_commit(lambda: ran.append("inner"))
        assert ran == []
    assert ran == ["outer", "inner"]


@pytest.mark.parametrize("fail", [True, False])
def test_callbacks_of_a_block_that_rolls_back_do_not_run(fail: bool) -> None:
    """A block that fails, or is marked for rollback, drops its callbacks, and the next one runs its own."""
    ran: list[str] = []

    def block() -> None:
        with transaction.atomic():
            transaction.on_commit(lambda: ran.append("dropped"))
            if fail:
                raise ValueError
            transaction.set_rollback(True)

    if fail:
        with pytest.raises(ValueError):
            block()
    else:
        block()
    with transaction.atomic():
        transaction.on_commit(lambda: ran.append("kept"))
    assert ran == ["kept"]


def test_savepoints_by_hand_pass() -> None:
    """You can manually create, release and roll back savepoints."""
    with transaction.atomic():
        # Django 6.1 gives savepoint() another name.
        create = getattr(transaction, "savepoint_create", None) or transaction.savepoint
        transaction.savepoint_commit(create())
        transaction.savepoint_rollback(create())
        assert not transaction.get_rollback()


def test_a_durable_block_must_be_the_outermost() -> None:
    """A durable block inside another raises an error, as with any database."""
    with transaction.atomic(durable=True):
        assert connection.in_atomic_block
    with transaction.atomic(), pytest.raises(RuntimeError), transaction.atomic(durable=True):
        pass


def test_a_connection_opens_again_after_it_was_closed() -> None:
    """Closing a connection leaves nothing behind."""
    with transaction.atomic():
        pass
    connection.close()
    assert connection.connection is None
    with transaction.atomic():
        assert connection.is_usable()


def test_manual_transactions_follow_the_same_rules() -> None:
    """Without autocommit, commit and rollback work, and the flag is kept."""
    transaction.set_autocommit(False)
    try:
        transaction.commit()
        transaction.rollback()
        assert not transaction.get_autocommit()
    finally:
        transaction.set_autocommit(True)


def test_django_is_told_that_nothing_is_rolled_back() -> None:
    """Tests that need a rollback can see that there is none."""
    assert not connection.features.supports_transactions


QUERIES: dict[str, tuple[str, Callable[[], object]]] = {
    "all": ("query", lambda: list(Row.objects.all())),
    "get": ("query", lambda: Row.objects.get(pk=1)),
    "first": ("query", lambda: Row.objects.first()),
    "iterator": ("query", lambda: list(Row.objects.iterator())),
    "values": ("query", lambda: list(Row.objects.values("name"))),
    "count": ("query", lambda: Row.objects.count()),
    "exists": ("query", lambda: Row.objects.filter(name="a").exists()),
    "aggregate": ("query", lambda: Row.objects.aggregate(models.Max("name"))),
    "aggregate over a slice": ("aggregate over", lambda: Row.objects.all()[:5].aggregate(models.Max("name"))),
    "union": ("query", lambda: list(Row.objects.union(Row.objects.filter(name="a")))),
    "explain": ("query", lambda: Row.objects.explain()),
    "as SQL": ("query", lambda: str(Row.objects.all().query)),
    "create": ("insert into", lambda: Row.objects.create(name="a")),
    "save": ("update", lambda: Row(pk=1, name="a").save()),
    "bulk_create": ("insert into", lambda: Row.objects.bulk_create([Row(name="a")])),
    "get_or_create": ("query", lambda: Row.objects.get_or_create(name="a")),
    "update": ("update", lambda: Row.objects.update(name="a")),
    "delete": ("delete from", lambda: Row(pk=1).delete()),
    "raw delete": ("delete from", lambda: Row.objects.all()._raw_delete("default")),
}


@pytest.mark.parametrize(("action", "ask"), QUERIES.values(), ids=QUERIES)
def test_a_query_of_an_sql_model_is_refused(action: str, ask: Callable[[], object]) -> None:
    """For any query of an SQL model, the error names the model and the alternatives."""
    with pytest.raises(NotSupportedError) as refused:
        ask()
    assert type(refused.value) is NotSupported
    assert str(refused.value) == (
        f"Cannot {action} elsewhere.Row: it is a model for an SQL database, and this project has no such database "
        "(DATABASES['default'] is dynamo_single.backend). Keep this data in a model of dynamo_single.models, or add an "
        "SQL database to DATABASES and route elsewhere.Row to it with DATABASE_ROUTERS."
    )


def test_a_query_known_to_be_empty_needs_no_database() -> None:
    """none() works without SQL."""
    nothing = Row.objects.none()
    assert list(nothing) == []
    assert nothing.first() is None
    assert (nothing.count(), nothing.exists(), nothing.update(name="a")) == (0, False, 0)
    assert nothing.delete() == (0, {})
    assert nothing.aggregate(number=models.Count("pk")) == {"number": 0}


def test_a_model_in_dynamodb_is_not_told_to_find_an_sql_database() -> None:
    """If a DynamoDB model reaches the SQL layer, the error blames the code path instead of the model."""

    class Both(Item):
        class _meta:
            label = "directory.Both"

    message = str(query_refused(Both, "query", "default"))  # type: ignore[arg-type]  # only the label is read
    assert "directory.Both is stored in DynamoDB. Use the methods of Both.objects" in message


def test_a_condition_without_a_model_is_not_taken_for_a_yes() -> None:
    """A constraint's condition raises an error that Django does not swallow."""
    with pytest.raises(ConfigurationError, match="Cannot evaluate a condition without a model"):
        models.Q(name="a").check({"name": "a"})


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize(
    "execute",
    [
        lambda cursor: cursor.execute("SELECT 1"),
        lambda cursor: cursor.execute("SELECT %s", [1]),
        lambda cursor: cursor.executemany("SELECT %s", [[1]]),
        lambda cursor: cursor.callproc("SELECT"),
    ],
)
def test_sql_on_a_cursor_is_refused(execute: Callable[[Any], object], debug: bool) -> None:
    """SQL text raises the app's own error, with the text."""
    connection.force_debug_cursor = debug
    try:
        with connection.cursor() as cursor, pytest.raises(NotSupported, match=r"Cannot execute '.*SELECT.*': .*no SQL"):
            execute(cursor)
    finally:
        connection.force_debug_cursor = False


def test_long_sql_is_shortened() -> None:
    """A long statement does not fill the message."""
    with connection.cursor() as cursor, pytest.raises(NotSupported, match="x…'"):
        cursor.execute("x" * 5000)


@pytest.mark.parametrize("fetch", ["fetchone", "fetchmany", "fetchall"])
def test_nothing_can_be_fetched(fetch: str) -> None:
    """A cursor without an executed statement has no rows."""
    with pytest.raises(Error, match="nothing to fetch"):
        getattr(Cursor("default"), fetch)()


def test_raw_queries_are_refused() -> None:
    """raw() raises, as a cursor does."""
    with pytest.raises(NotSupported, match="Cannot execute"):
        list(Row.objects.raw("SELECT 1"))


@pytest.mark.parametrize(
    "operation",
    [name for name, _ in inspect.getmembers(BaseDatabaseSchemaEditor, inspect.isfunction) if name[0] != "_"],
)
def test_no_schema_is_edited(operation: str) -> None:
    """Every operation of Django's schema editor raises an error that names it."""
    with connection.schema_editor() as editor, pytest.raises(NotSupported, match=rf"\({operation}\)"):
        getattr(editor, operation)(Row)


@pytest.mark.parametrize("name", [name for name in dir(django_compiler) if name.endswith("Compiler")])
def test_every_compiler_is_ours(name: str) -> None:
    """Django has no compiler that would pass the engine by."""
    assert connection.ops.compiler(name) is getattr(compiler, name)
    assert issubclass(getattr(compiler, name), compiler.SQLCompiler)


@pytest.mark.parametrize(
    "ask",
    [
        lambda applied: list(applied.filter(applied__year=2020)),
        lambda applied: applied.aggregate(models.Max("id")),
        lambda applied: applied.update(name="b"),
        lambda applied: applied.create(app="a", name="b"),
    ],
)
def test_the_record_of_migrations_answers_few_questions(ask: Callable[[Any], object]) -> None:
    """The record returns applied migrations; other operations, which Django's recorder never uses, raise an error."""
    recorder = MigrationRecorder(connection)
    assert set(recorder.applied_migrations()) == set(MigrationLoader(connection).disk_migrations)
    with pytest.raises(NotSupported, match="the record of migrations"):
        ask(recorder.migration_qs)


@pytest.mark.parametrize(
    ("internal_type", "expected"), [("IntegerField", (None, None)), ("PositiveSmallIntegerField", (0, None))]
)
def test_integers_have_no_width(internal_type: str, expected: tuple[int | None, int | None]) -> None:
    """A form does not refuse an integer that DynamoDB can store."""
    assert connection.ops.integer_field_range(internal_type) == expected


@pytest.mark.parametrize(
    ("hints", "expected"),
    [({"model": Row}, False), ({"model_name": "row"}, False), ({}, False), ({"model": Item}, None)],
)
def test_the_router_keeps_sql_models_away(hints: dict[str, Any], expected: bool | None) -> None:
    """SQL models have no table here; loaddata and dumpdata do not pass over models that DynamoDB stores."""
    assert NoSQLRouter().allow_migrate("default", "elsewhere", **hints) is expected


def test_the_router_is_installed_once() -> None:
    """Django calls the router once, however many times the app starts."""
    install_router()
    install_router()
    assert [type(installed) for installed in router.routers].count(NoSQLRouter) == 1


def test_flush_finds_the_router_after_a_test_with_routers_of_its_own() -> None:
    """Django then rebuilds the list of routers, and uses it after the flush at a test's end."""
    with override_settings(DATABASE_ROUTERS=[]):
        pass
    connection.ops.sql_flush(no_style(), [])
    assert [type(installed) for installed in router.routers].count(NoSQLRouter) == 1


def test_settings_are_checked_as_with_any_database() -> None:
    """A wrong setting of the alias raises an error at the first use."""
    wrong = DatabaseWrapper(connection.settings_dict | {"TIME_ZONE": "UTC"}, "wrong")
    with override_settings(USE_TZ=False), pytest.raises(ImproperlyConfigured):
        wrong.ensure_connection()
