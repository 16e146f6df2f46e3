"""Which of Django's test apps are run, and what the managers of their models may do besides reading by keys."""

from __future__ import annotations

from dataclasses import dataclass

#: The indexes of the table.
INDEXES = tuple(f"gs{number}" for number in range(1, 10))

IN_MEMORY = ("allow_in_memory",)


#: What of Django's own is converted too: without an SQL database the present site is asked of it all the same.
CONTRIB = ("django.contrib.sites",)


@dataclass(frozen=True, slots=True)
class App:
    """One app: what every manager calls on its querysets, and whether it runs with ``make test`` too.

    The models of an app that is not ``converted`` are SQL models that extend Django's own. ``left_out`` are methods by
    which test cases make and drop SQL tables, and tests of how long something takes.

    An app of the ``admin`` is run as a project has it that was ported: with ``DynamoAdminConfig``, ``DynamoAdminSite``,
    ``DynamoModelAdmin`` and our inlines in the places of Django's, the log in DynamoDB, and permissions that are stored
    with the users, by name.
    """

    managers: tuple[str, ...] = ()
    fast: bool = False
    converted: bool = True
    admin: bool = False
    left_out: tuple[str, ...] = ()


APPS = {
    "basic": App(IN_MEMORY, fast=True),
    "get_object_or_404": App(),
    "get_or_create": App(fast=True),
    "lookup": App(IN_MEMORY, fast=True),
    "ordering": App(IN_MEMORY, fast=True),
    "update": App(IN_MEMORY),
    "save_delete_hooks": App(),
    "signals": App(),
    "custom_managers": App(IN_MEMORY),
    "custom_pk": App(IN_MEMORY),
    "defer": App(),
    "or_lookups": App(IN_MEMORY),
    "null_queries": App(),
    "pagination": App(),
    "async": App(IN_MEMORY),
    "bulk_create": App(IN_MEMORY),
    "serializers": App(
        IN_MEMORY, left_out=("serializers.test_deserialization.TestDeserializer.test_crafted_xml_performance",)
    ),
    "validation": App(),
    "model_forms": App(IN_MEMORY),
    "model_formsets": App(IN_MEMORY),
    "generic_views": App(IN_MEMORY),
    "queryset_pickle": App(IN_MEMORY),
    "dates": App(IN_MEMORY),
    "datetimes": App(IN_MEMORY),
    "many_to_one": App(IN_MEMORY),
    "one_to_one": App(IN_MEMORY),
    "known_related_objects": App(IN_MEMORY),
    "update_only_fields": App(),
    "force_insert_update": App(),
    "delete": App(IN_MEMORY),
    "select_related": App(),
    "prefetch_related": App(IN_MEMORY),
    "auth_tests": App(),
    "sessions_tests": App(converted=False),
    "cache": App(left_out=("cache.tests.DBCacheTests.create_table", "cache.tests.DBCacheTests.drop_table")),
    "messages_tests": App(),
    "test_client": App(),
    "admin_views": App(IN_MEMORY, admin=True),
    "admin_changelist": App(IN_MEMORY, admin=True),
    "admin_inlines": App(IN_MEMORY, admin=True),
    "admin_filters": App(IN_MEMORY, admin=True),
    "admin_utils": App(IN_MEMORY, admin=True),
    "admin_ordering": App(IN_MEMORY, fast=True, admin=True),
    "modeladmin": App(IN_MEMORY, fast=True, admin=True),
}
