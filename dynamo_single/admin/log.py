"""The admin's log for users in DynamoDB.

It is imported only if users are stored there, after apps are loaded. ``history`` writes its entries.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar, Final
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.contrib.admin.models import ACTION_FLAG_CHOICES
from django.contrib.admin.models import LogEntry as DjangoLogEntry
from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dynamo_single import models
from dynamo_single.conf import alias_of_own_models, table_settings
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema.attributes.references import ModelLabel
from dynamo_single.orm.where.arguments import with_leaves_of
from dynamo_single.table.names import LOG_OF_OBJECT


def _second_index() -> str | None:
    try:
        indexes = table_settings(alias_of_own_models()).indexes
    except ConfigurationError:
        # Reported in one line when this app starts. The admin's app may start earlier.
        return None
    return next((name for name in indexes if name != "gs1"), None)


#: The index that lists the entries of all users: the table's second index, if it has one.
TIME_INDEX: Final = _second_index()


def readable_message(message: list[Any], text: str) -> str:
    """Return a message for users: Django's text, followed by the values."""
    lines = [
        _of(changed)
        + gettext('%(field)s: from "%(before)s" to "%(after)s"')
        % {"field": gettext(label), "before": old, "after": new}
        for changed in (entry.get("changed", {}) for entry in message if isinstance(entry, dict))
        for label, (old, new) in changed.get("values", {}).items()
    ]
    return f"{text} {'; '.join(lines)}." if lines else text


def _of(changed: dict[str, Any]) -> str:
    """Return the name of the inline row that the values belong to."""
    return f"{gettext(changed['name'])} “{changed['object']}”, " if "object" in changed else ""


class LogEntries(models.QuerySet["LogEntry"]):
    """A queryset that accepts the names of Django's own entries: ``content_type`` in conditions, and ``id``."""

    def _filter_or_exclude_inplace(self, negate: bool, args: Any, kwargs: Any) -> None:
        stored = [*map(_stored, kwargs.items())]
        kwargs = dict(stored)
        # The app and the model of a content type are two conditions on one attribute.
        others = (Q(each) for each in stored if kwargs[each[0]] is not each[1])
        super()._filter_or_exclude_inplace(
            negate, (*(with_leaves_of(each, _stored_in) for each in args), *others), kwargs
        )

    def order_by(self, *field_names: Any) -> LogEntries:
        """Order as the log's keys do; the order of Django's ``id`` is that of the time."""
        return super().order_by(*(_ORDERS.get(name, name) for name in field_names))


_ORDERS: Final = {"id": "action_time", "-id": "-action_time"}


def _stored_in(condition: Any) -> Any:
    """Return a condition with the names that are stored."""
    return _stored(condition) if isinstance(condition, tuple) and len(condition) == 2 else condition


def _stored(condition: tuple[str, Any]) -> tuple[str, Any]:
    """Return the condition on ``object_type`` in the place of one on a content type, and on ``pk`` for ``id``.

    Without an SQL database no request is sent for the content types.
    """
    path, value = condition
    name, _separator, rest = path.partition("__")
    is_equal = rest in ("", "exact")
    if name == "id":
        return f"pk{path.removeprefix(name)}", value
    if name == "object_id" and is_equal and isinstance(value, int | UUID):
        return path, str(value)  # the log stores each key as text
    if name not in ("content_type", "content_type_id"):
        return condition
    from django.contrib.contenttypes.models import ContentType

    if is_equal and isinstance(value, ContentType):
        return "object_type", _label(value)
    if rest == "in" and not hasattr(value, "query"):
        value = [getattr(each, "pk", each) for each in value]
    asked = "pk" if is_equal else f"pk__{rest}" if rest == "in" else rest
    return "object_type__in", sorted(map(_label, ContentType.objects.filter(**{asked: value})))


def _label(kind: Any) -> str:
    return f"{kind.app_label}.{kind.model}"


class LogEntryManager(models.Manager.from_queryset(LogEntries)):  # type: ignore[misc]  # a class that is computed
    """Django's manager of the log, with its only method."""

    def log_actions(
        self,
        user_id: object,
        queryset: Iterable[Any],
        action_flag: int,
        change_message: object = "",
        *,
        single_object: bool = False,
    ) -> LogEntry | list[LogEntry]:
        """Write an entry for each object. Return their list, or with ``single_object`` the only one.

        ``change_message`` is a text, or a list as ``ModelAdmin`` constructs it. Sends one PutItem for a single entry.
        Several are written by ``bulk_create()``, which sends no signals, as in Django.
        """
        message = json.dumps(change_message) if isinstance(change_message, list) else str(change_message)
        entries = [
            self.model(
                user_id=user_id,
                object_type=obj._meta.label_lower,
                object_id=str(obj.pk),
                object_repr=str(obj)[:200],
                action_flag=action_flag,
                change_message=message,
            )
            for obj in queryset
        ]
        if len(entries) != 1:
            return list(self.bulk_create(entries))
        entries[0].save(force_insert=True)
        return entries[0] if single_object else entries


class LogEntry(models.Model):
    """One action of one user, like Django's ``LogEntry``, read newest first.

    The entries of a user are one partition, and "recent actions" sends one Query. The history of an object is one Query
    on ``gs1``. The entries of all users by time are one Query on the table's second index, if it has one.
    """

    user: Any = models.ReferenceAttribute(
        settings.AUTH_USER_MODEL, _("user"), on_delete=models.DO_NOTHING, related_name="+"
    )
    action_time = models.TimestampAttribute(_("action time"), auto_now_add=True)
    entry_id = models.IdAttribute()
    object_type = ModelLabel(_("content type"))
    object_id = models.UnicodeAttribute(_("object id"))
    object_repr = models.UnicodeAttribute(_("object repr"), blank=True, max_length=200)
    action_flag = models.IntegerAttribute(_("action flag"), choices=ACTION_FLAG_CHOICES)
    change_message = models.UnicodeAttribute(_("change message"), blank=True, multiline=True)

    objects: ClassVar[LogEntryManager] = LogEntryManager()

    class Keys:
        primary = models.Key("LOG#USER#{user_id}", "{action_time}#{entry_id}")
        by_object = models.IndexKey("gs1", f"{LOG_OF_OBJECT}#{{object_type}}#{{object_id}}", "{action_time}#{entry_id}")
        if TIME_INDEX is not None:
            by_time = models.IndexKey(TIME_INDEX, "LOG", "{action_time}#{entry_id}")

    class Meta:
        app_label = "dynamo_single"
        item_type = "AdminLogEntry"
        table = alias_of_own_models()
        verbose_name = _("log entry")
        verbose_name_plural = _("log entries")
        ordering = ("-action_time",)

    # The admin's templates use these methods of Django, which need the attributes above and ``content_type``.
    __str__ = DjangoLogEntry.__str__
    is_addition = DjangoLogEntry.is_addition
    is_change = DjangoLogEntry.is_change
    is_deletion = DjangoLogEntry.is_deletion
    get_admin_url = DjangoLogEntry.get_admin_url

    def get_change_message(self) -> str:
        """Return the changed fields with their old and new values."""
        text: str = DjangoLogEntry.get_change_message(self)  # type: ignore[arg-type]  # it reads one attribute
        try:
            message = json.loads(self.change_message)
        except ValueError:
            return text
        return readable_message(message, text) if isinstance(message, list) else text

    @property
    def id(self) -> Any:
        """The ``pk``, under its name on Django's own entries."""
        return self.pk

    @property
    def content_type(self) -> Any:
        """The content type of the object's model, or ``None`` if the model is gone."""
        from django.contrib.contenttypes.models import ContentType

        try:
            model = apps.get_model(self.object_type)
        except LookupError:
            return None
        return ContentType.objects.get_for_model(model, for_concrete_model=False)

    @content_type.setter
    def content_type(self, kind: Any) -> None:
        self.object_type = _label(kind)

    @property
    def content_type_id(self) -> Any:
        """The ``pk`` of the content type, or ``None`` if the model is gone."""
        kind = self.content_type
        return None if kind is None else kind.pk

    @content_type_id.setter
    def content_type_id(self, pk: Any) -> None:
        from django.contrib.contenttypes.models import ContentType

        self.content_type = ContentType.objects.get_for_id(pk)

    def get_edited_object(self) -> Any:
        """Return the object of the entry: one GetItem."""
        return apps.get_model(self.object_type)._base_manager.get(pk=self.object_id)
