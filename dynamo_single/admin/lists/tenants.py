"""Choose the tenant of a list: the object or value that every key of a model requires.

No key lists the orders of all customers if each key begins with a customer. Instead of an error, the list shows a
form for the customer. The session stores the choice for the next visit: one write when it changes.
"""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from msgspec import Struct

from dynamo_single.admin import secrets
from dynamo_single.admin.lists import in_memory
from dynamo_single.admin.lists.filters import listed_choices
from dynamo_single.admin.references import is_served_by_keys
from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.orm.schema.fields.base import ReferenceField
from dynamo_single.orm.schema.registry import layout_of

#: The parameter that shows the form although the session contains a tenant.
CHOOSE_VAR: Final = "_choose"
_SESSION: Final = "_dynamo_single_tenants"
#: The most models and characters that the session stores.
_MAX_MODELS: Final = 50
_MAX_LENGTH: Final = 1000


class Tenant(Struct, frozen=True):
    """The attribute that a list requires, and the parameter of the address that filters by it."""

    field: Any
    parameter: str


def tenant_of(model_admin: Any) -> Tenant | None:
    """Return the tenant that the list requires; ``None`` if a key lists all objects, or none lists those of a tenant.

    Does not send a request.
    """
    rows = model_admin.model._default_manager.all().order_by()
    if is_served_by_keys(rows):
        return None
    fields = {field.attname: field for field in model_admin.opts.concrete_fields}
    for key in layout_of(model_admin.model).keys:
        names = {part.name for part in key.partition.parts}
        (name,) = names if len(names) == 1 else (None,)
        if name is None or {*key.variables} == names or name not in fields:
            continue
        field = fields[name]
        parameter = f"{field.name}__{field.target_field.name}" if isinstance(field, ReferenceField) else field.name
        if not secrets.is_secret(model_admin, field.name) and _lists(rows, parameter):
            return Tenant(field, f"{parameter}__exact")
    return None


def _lists(rows: Any, parameter: str) -> bool:
    for example in ("a", "1"):
        try:
            return is_served_by_keys(rows.filter(**{parameter: example}))
        except (DynamoSingleError, ValueError):
            continue
    return False


def remember(request: HttpRequest, model_admin: Any, tenant: Tenant) -> None:
    """Store the tenant of a list in the session, if it differs from the stored one."""
    session: Any = getattr(request, "session", None)
    value = request.GET.get(tenant.parameter, "")
    if session is None or not value or len(value) > _MAX_LENGTH:
        return
    stored = session.get(_SESSION, {})
    label = model_admin.opts.label_lower
    if stored.get(label) != value and (label in stored or len(stored) < _MAX_MODELS):
        session[_SESSION] = {**stored, label: value}


def choose(request: HttpRequest, model_admin: Any, tenant: Tenant, scan_link: str) -> HttpResponseBase:
    """Return a redirect to the list of the stored tenant, or the page with the choices.

    A page reads the objects that a reference may have: a Query for each megabyte, up to the list's bound. Above that,
    and for other attributes, the user enters the value.
    """
    stored = getattr(request, "session", {}).get(_SESSION, {}).get(model_admin.opts.label_lower)
    asked = request.GET.copy()
    asked.pop(tenant.parameter, None)
    if CHOOSE_VAR not in asked and stored:
        asked[tenant.parameter] = stored
        return HttpResponseRedirect(f"{request.path}?{asked.urlencode()}")
    asked.pop(CHOOSE_VAR, None)
    name = str(tenant.field.verbose_name)
    request.current_app = model_admin.admin_site.name
    context = {
        **model_admin.admin_site.each_context(request),
        "title": _("Choose: %(name)s") % {"name": name},
        "name": capfirst(name),
        "opts": model_admin.opts,
        "parameter": tenant.parameter,
        "chosen": stored or "",
        "choices": _choices(request, model_admin, tenant),
        "others": [(each, value) for each, values in asked.lists() for value in values],
        "scan_link": scan_link,
        "has_add_permission": model_admin.has_add_permission(request),
    }
    return TemplateResponse(request, "dynamo_single/admin/choose_tenant.html", context)


def _choices(request: HttpRequest, model_admin: Any, tenant: Tenant) -> list[tuple[str, str]]:
    """Return the keys and names of the objects that the user may see; none if the user has to enter a key."""
    field = tenant.field
    if not isinstance(field, ReferenceField) or not is_stored_in_dynamodb(field.remote_field.model):
        return []
    ordering = model_admin.get_field_queryset(None, field, request)
    names = () if ordering is None else ordering.query.order_by
    return listed_choices(field, request, model_admin, names, in_memory.others_limit_of(model_admin))
