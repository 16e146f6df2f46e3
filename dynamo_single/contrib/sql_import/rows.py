"""Convert rows to objects: values to the types of attributes, references to the ``pk`` of the objects.

Objects keep the times and authors of their rows. If a row does not fit, a reason names the attribute, never the value.
This module does not send signals or requests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any, Final, Literal

from django.core.exceptions import ValidationError
from django.db import models
from msgspec import Struct

from dynamo_single.auth.membership import MAX_GROUPS
from dynamo_single.contrib.sql_import.introspected import field_of
from dynamo_single.contrib.sql_import.mapping import CONTENT_TYPES, PERMISSIONS, Feed, Import, Plan, sets_itself
from dynamo_single.contrib.sql_import.tables import Column, Place, SourceTable, Values, related
from dynamo_single.exceptions import ConfigurationError, InvalidValue
from dynamo_single.orm.items.encode import pk_of
from dynamo_single.orm.items.stored import NAME as STORED
from dynamo_single.orm.reading.single import has_expired
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fields.fetching import ObjectState
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.table import names

#: The outcome of a row. ``deferred`` means that a reference is not stored yet.
Outcome = Literal["created", "existed", "different", "refused", "deferred"]

#: The words for codes of Django's validation errors. The report shows other codes.
_WORDS: Final = {
    "invalid_choice": "is not one of the choices",
    "max_length": "is too long",
    "invalid": "does not fit",
    "invalid_value": "does not fit",
}
#: The maximum number of references between a primary key and its values.
_MAX_STEPS: Final = 8


class Unfit(Exception):
    """A row does not fit its model. The message names the reason without values."""


class Row(Struct, eq=False):
    """A row with its primary key, object, prepared values, outcome and reason."""

    pk: tuple[Any, ...]
    shown_pk: str
    obj: Any = None
    values: Mapping[str, Any] = {}
    outcome: Outcome | None = None
    reason: str = ""

    def settle(self, outcome: Outcome, reason: str = "") -> None:
        """Set the outcome."""
        self.outcome, self.reason = outcome, reason


class Converter:
    """Converts the rows of a plan; ``validates`` applies the choices and validators of fields."""

    def __init__(self, plan: Plan, using: str, *, validates: bool = True) -> None:
        self.plan = plan
        self.using = using
        self.validates = validates

    def rows(self, each: Import, found: Sequence[Values]) -> list[Row]:
        """Return some rows of a table with their objects, or refused.

        A reference takes a query if the primary key of the referenced object is not the value itself. A many-to-many
        relation takes up to two.
        """
        given = self._given(each, found, each.feeds)
        rows = []
        for values, row in zip(given, found, strict=True):
            pk = tuple(row[name] for name in each.source.pk)
            made = Row(pk, MASK if each.is_secret else ", ".join(map(str, pk)))
            try:
                made.obj, made.values = self._object(each, values)
            except Unfit as error:
                made.settle("refused", str(error))
            rows.append(made)
        return rows

    # values

    def _given(self, each: Import, found: Sequence[Values], feeds: Iterable[Feed], step: int = 0) -> list[Values]:
        """Return the values of attributes for each row. An ``Unfit`` replaces a missing value."""
        given: list[Values] = [{} for _ in found]
        for feed in feeds:
            for values, value in zip(given, self._of_feed(each, feed, found, step), strict=True):
                values[feed.name] = value
        return given

    def _of_feed(self, each: Import, feed: Feed, found: Sequence[Values], step: int) -> list[Any]:
        if feed.link is not None:
            return self._members(each, feed, found)
        column = feed.column
        assert column is not None and feed is not None  # noqa: S101 - a feed has one of both
        values = [row[column.name] for row in found]
        if feed.kind == "label":
            return [None if value is None else self._labels.get(value, _DANGLING) for value in values]
        if feed.kind == "reference" and column.refers is not None:
            known = self._pks(column.refers, values, step)
            return [None if value is None else known.get(value, _DANGLING) for value in values]
        return values

    def _members(self, each: Import, feed: Feed, found: Sequence[Values]) -> list[Any]:
        link = feed.link
        assert link is not None  # noqa: S101 - the caller has checked it
        owner = each.source.pk[0]
        near = link.through.columns[link.near].refers
        if near is not None and (column := each.source.column_at(near.column)) is not None:
            owner = column.name
        held = related(link, [row[owner] for row in found])
        far = link.through.columns[link.far].refers
        wanted = [value for values in held.values() for value in values]
        if not wanted:
            return [None] * len(found)
        if far is not None and far.table == PERMISSIONS:
            known: Mapping[Any, Any] = self._permissions
        else:
            known = {value: value for value in wanted} if far is None else self._pks(far, wanted, 0)
        sets = ({known.get(value, _DANGLING) for value in held.get(row[owner], ())} for row in found)
        return [_DANGLING if _DANGLING in members else members or None for members in sets]

    def _pks(self, place: Place, values: Collection[Any], step: int) -> Mapping[Any, Any]:
        """Return the ``pk`` of the referenced objects by the values of a column."""
        wanted = {value for value in values if value is not None}
        target = self.plan.of_table(place.table)
        if target is None:
            return {value: value for value in wanted}
        if step == _MAX_STEPS:
            raise ConfigurationError(
                f"{target.model._meta.label}: its primary key depends on a reference to itself through {_MAX_STEPS} "
                "models. Name other columns with --map."
            )
        feeds = target.identity_feeds
        if len(feeds) == 1 and feeds[0].kind == "value" and _is_at(feeds[0].column, place):
            return {value: converted(feeds[0].attribute.field, value) for value in wanted}
        column = target.source.column_at(place.column)
        if column is None:
            raise ConfigurationError(f"{place.table} has no column {place.column}, to which a foreign key refers.")
        found = [*target.source.rows_with(column.name, wanted)] if wanted else []
        pks: Values = {}
        for row, given in zip(found, self._given(target, found, feeds, step + 1), strict=True):
            try:
                prepared = {feed.name: _prepared(feed.attribute, given[feed.name]) for feed in feeds}
            except Unfit as error:
                pks[row[column.name]] = error
            else:
                pks[row[column.name]] = pk_of(target.model, prepared)
        return pks

    @cached_property
    def _types(self) -> Mapping[Any, tuple[str, str]]:
        """The names of app and model for each content type, after ``--map``."""
        source = self._own_table(CONTENT_TYPES, "app_label", "model")
        return {row["id"]: self._renamed(row["app_label"], row["model"]) for page in source for row in page}

    @cached_property
    def _labels(self) -> Mapping[Any, str]:
        return {pk: ".".join(label) for pk, label in self._types.items()}

    @cached_property
    def _permissions(self) -> Mapping[Any, str]:
        """The permissions as strings. A default permission follows its model to the new name."""
        old = {row["id"]: row["model"] for page in self._own_table(CONTENT_TYPES, "app_label", "model") for row in page}
        found = {}
        for page in self._own_table(PERMISSIONS, "codename", "content_type_id"):
            for row in page:
                app, model = self._types[row["content_type_id"]]
                action, _, of = row["codename"].rpartition("_")
                codename = f"{action}_{model}" if of == old[row["content_type_id"]] and action else row["codename"]
                found[row["id"]] = f"{app}.{codename}"
        return found

    def _renamed(self, app: str, model: str) -> tuple[str, str]:
        found = next(
            (
                each.model
                for each in self.plan.imports
                if each.source.label.lower() == f"{app}.{model}" or each.source.table == f"{app}_{model}"
            ),
            None,
        )
        return (app, model) if found is None else (found._meta.app_label, found._meta.model_name)

    def _own_table(self, table: str, *columns: str) -> Iterable[list[Values]]:
        key = Column("id", "id", models.BigIntegerField())
        others = [Column(name, name, field_of("")) for name in columns]
        return SourceTable(table, table, using=self.using, pk=["id"], columns=[key, *others]).pages(1000)

    # objects

    def _object(self, each: Import, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        obj = new_object(each.model)
        for feed in each.feeds:
            setattr(obj, feed.name, _usable(feed.name, converted(feed.attribute.field, given[feed.name])))
        for attribute in registry.attributes_of(each.model).values():
            if attribute.name not in given and sets_itself(attribute):
                attribute.field.pre_save(obj, True)
        prepared = {feed.name: self._checked(feed, obj) for feed in each.feeds}
        if has_expired({names.EXPIRES_AT: _stored(each.model, prepared)}):
            raise Unfit("has expired")
        if len(prepared.get("group_ids") or ()) > MAX_GROUPS:
            raise Unfit(f"group_ids: more than {MAX_GROUPS} groups")
        return obj, prepared

    def _checked(self, feed: Feed, obj: Any) -> Any:
        field, value = feed.attribute.field, feed.attribute.current(obj.__dict__)
        if value is None and not feed.attribute.null:
            raise Unfit(f"{feed.name}: is missing")
        # Only forms require a value; databases may contain empty strings.
        if self.validates and not field.is_relation and value not in field.empty_values:
            try:
                field.validate(value, obj)
                field.run_validators(value)
            except ValidationError as error:
                raise Unfit(f"{feed.name}: {_reason(error)}") from None
        return _prepared(feed.attribute, value)


#: Replaces a reference to a missing row.
_DANGLING: Final = Unfit("refers to a row that does not exist")


def _usable(name: str, value: Any) -> Any:
    if isinstance(value, Unfit):
        raise Unfit(f"{name}: {value}")
    return value


def _reason(error: ValidationError) -> str:
    codes = dict.fromkeys(each.code or "invalid" for each in error.error_list)
    return ", ".join(_WORDS.get(code, f"is not valid ({code})") for code in codes)


def _is_at(column: Column | None, place: Place) -> bool:
    return column is not None and column.column == place.column


def _prepared(attribute: Any, value: Any) -> Any:
    """Return the prepared value; raise ``Unfit`` if the attribute rejects it."""
    _usable(attribute.name, value)
    try:
        found = attribute.prepare(converted(attribute.field, value))
        if found is not None:
            attribute.check_whole(found)
    except InvalidValue:
        raise Unfit(f"{attribute.name}: does not fit") from None
    return found


def _stored(model: Any, prepared: Mapping[str, Any]) -> Any:
    for name, value in prepared.items():
        attribute = registry.attributes_of(model)[name]
        if attribute.attr_name == names.EXPIRES_AT and value is not None:
            return attribute.to_attribute_value(value)
    return {}


def new_object(model: Any) -> Any:
    """Return an object with default values. It does not send signals or open image files."""
    obj = model.__new__(model)
    fields = (field for field in model._meta.concrete_fields if hasattr(field, "attribute"))
    obj.__dict__ = {"_state": ObjectState(), STORED: None, **{field.attname: field.get_default() for field in fields}}
    return obj


def converted(field: Any, value: Any) -> Any:
    """Return an SQL value as the type of a field, or ``Unfit`` if this would lose a part of it.

    Documents do not change: their attributes accept JSON values.
    """
    if value is None or isinstance(value, Unfit):
        return value
    if isinstance(value, memoryview):
        value = bytes(value)
    if isinstance(field, models.JSONField) or (isinstance(value, float) and isinstance(field, models.FloatField)):
        return value
    if isinstance(value, float) and isinstance(field, models.DecimalField):
        value = Decimal(repr(value))
    if isinstance(value, bytes) and isinstance(field, models.CharField | models.TextField):
        return Unfit("does not fit")
    try:
        found = field.to_python(value)
    except (ValidationError, ValueError, TypeError, ArithmeticError):
        return Unfit("does not fit")
    return Unfit("does not fit") if _is_cut(value, found) else found


def _is_cut(value: Any, found: Any) -> bool:
    numbers = (int, float, Decimal)
    return isinstance(value, numbers) and isinstance(found, numbers) and bool(found != value)
