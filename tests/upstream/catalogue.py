"""List Django's test apps that are run, with their options."""

from __future__ import annotations

from dataclasses import dataclass

#: The indexes of the table.
INDEXES = tuple(f"gs{number}" for number in range(1, 10))

#: Contrib apps that are converted too: upstream reads the current site even without an SQL database.
CONTRIB = ("django.contrib.sites",)


@dataclass(frozen=True, slots=True)
class App:
    """One app, and whether it runs with ``make test`` too.

    The models of an app that is not ``converted`` are SQL models that extend Django's own. ``left_out`` are methods by
    which test cases make and drop SQL tables, and tests of how long something takes.

    An app of the ``admin`` is run as a project has it that was ported: with ``DynamoAdminConfig``, ``DynamoAdminSite``,
    ``DynamoModelAdmin`` and our inlines in the places of Django's, the log in DynamoDB, and permissions that are stored
    with the users, by name.
    """

    fast: bool = False
    converted: bool = True
    admin: bool = False
    left_out: tuple[str, ...] = ()


APPS = {
    "basic": App(fast=True),
    "get_object_or_404": App(),
    "get_or_create": App(fast=True),
    "lookup": App(fast=True),
    "ordering": App(fast=True),
    "update": App(),
    "save_delete_hooks": App(),
    "signals": App(),
    "custom_managers": App(),
    "custom_pk": App(),
    "defer": App(),
    "or_lookups": App(),
    "null_queries": App(),
    "pagination": App(),
    "async": App(),
    "bulk_create": App(),
    "serializers": App(left_out=("serializers.test_deserialization.TestDeserializer.test_crafted_xml_performance",)),
    "validation": App(),
    "model_forms": App(),
    "model_formsets": App(),
    "generic_views": App(),
    "queryset_pickle": App(),
    "dates": App(),
    "datetimes": App(),
    "many_to_one": App(),
    "one_to_one": App(),
    "known_related_objects": App(),
    "update_only_fields": App(),
    "force_insert_update": App(),
    "delete": App(),
    "select_related": App(),
    "prefetch_related": App(),
    "annotations": App(),
    "aggregation": App(),
    "aggregation_regress": App(),
    "expressions": App(),
    "expressions_case": App(),
    "db_functions": App(),
    "queries": App(),
    "many_to_many": App(),
    "m2m_and_m2o": App(),
    "m2m_through": App(),
    "m2m_regress": App(),
    "generic_relations": App(),
    "contenttypes_tests": App(),
    "fixtures": App(),
    "forms_tests": App(),
    "inline_formsets": App(),
    "view_tests": App(),
    "syndication_tests": App(),
    "sitemaps_tests": App(),
    "proxy_models": App(),
    "model_inheritance": App(),
    "select_related_onetoone": App(),
    "xor_lookups": App(),
    "string_lookup": App(),
    "null_fk": App(),
    "nested_foreign_keys": App(),
    "model_options": App(),
    "timezones": App(),
    "auth_tests": App(),
    "sessions_tests": App(converted=False),
    "cache": App(left_out=("cache.tests.DBCacheTests.create_table", "cache.tests.DBCacheTests.drop_table")),
    "messages_tests": App(),
    "test_client": App(),
    "admin_views": App(admin=True),
    "admin_changelist": App(admin=True),
    "admin_inlines": App(admin=True),
    "admin_filters": App(admin=True),
    "admin_utils": App(admin=True),
    "admin_ordering": App(fast=True, admin=True),
    "modeladmin": App(fast=True, admin=True),
}
