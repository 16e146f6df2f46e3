"""Show attributes of an item that its model does not declare on the object's page; a save leaves them alone."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest

from dynamo_single.admin.editing.page import ExtendsForm
from dynamo_single.admin.secrets import also_of
from dynamo_single.inspection.masking import Masks
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.schema.encoding import values
from dynamo_single.orm.schema.fields.documents import document_text
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.table import names

#: Nobody has declared who may see such an attribute, so it takes the permission to see the whole table.
_PERMISSION: Final = "dynamo_single.view_table"
#: Characters of a value, and attributes, that a page shows; an item has up to 400 KB.
LENGTH: Final = 10_000
ATTRIBUTES: Final = 100
#: What this app keeps in items beside their attributes.
_OWN: Final = frozenset(
    {
        names.PARTITION_KEY,
        names.SORT_KEY,
        names.ITEM_TYPE,
        names.SCHEMA_VERSION,
        names.COPIES_DUE,
        names.MOVED_FROM,
        names.COUNTING,
        names.DELETED_ALONG,
    }
)


class ShowsUnknown(ExtendsForm):
    """Has what is stored beside a model's attributes on an object's page, for those who may view the table."""

    def _prepare_form(self, request: HttpRequest, context: dict[str, Any], obj: DynamoModel | None) -> None:
        super()._prepare_form(request, context, obj)
        user: Any = request.user
        if obj is not None and user.has_perm(_PERMISSION):
            context["dynamo_unknown"] = unknown_of(obj, Masks(also_of(self)))


def unknown_of(obj: Any, masks: Masks) -> list[tuple[str, str]]:
    """Names and values, as text, of what is stored with an object and no attribute of its model; secrets are masked.

    Sends nothing. Of an item of an earlier schema version, what its upgrade leaves over.
    """
    if obj._stored is None:
        return []
    model = type(obj)._meta.concrete_model
    form = form_of(model)
    item = form.upgraded(obj._stored)
    found = sorted(name for name in item if name not in form.known and not _is_own(name))
    kind = item.get(names.ITEM_TYPE, {}).get("S", "")
    visible = masks.masked(model, kind, {name: item[name] for name in found[:ATTRIBUTES]})
    return [(name, as_words(values.from_attribute_value(dict(value)))) for name, value in visible.items()]


def _is_own(name: str) -> bool:
    return name in _OWN or name.startswith(names.REFERRED_PREFIX)


def as_words(value: object) -> str:
    """A stored value as people read it: texts as they are, anything else as indented JSON."""
    text = value if isinstance(value, str) else document_text(value)
    return text if len(text) <= LENGTH else f"{text[:LENGTH]}…"
