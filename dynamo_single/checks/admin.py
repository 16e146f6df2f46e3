"""System checks of the admin: lists, middleware, inlines, users, permissions and logs.

W904 reports lists that no key supports, W909 a middleware that fails without DynamoDB, and W920 inlines that hide
nothing. E012, E013 and E017 report the parts of Django's login, permissions and log that need an SQL database if there
is none. The checks do not call methods that depend on a request, such as ``get_queryset()``, and do not send requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib.admin import ModelAdmin, StackedInline
from django.contrib.admin.options import InlineModelAdmin
from django.contrib.auth import get_user_model
from django.core.checks import CheckMessage, Error, Warning
from django.db import router
from django.db.models import BooleanField
from django.utils.module_loading import import_string
from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.admin import paths
from dynamo_single.admin.lists import search
from dynamo_single.admin.lists.in_memory import limit_of
from dynamo_single.admin.secrets import SecretsMixin
from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.backend.router import uses_engine
from dynamo_single.exceptions import ConfigurationError, InvalidValue, NotSupported, UnknownField
from dynamo_single.orm.query.state import state_of
from dynamo_single.orm.results import rows
from dynamo_single.orm.results.cached_lists import CachedLists
from dynamo_single.orm.results.state import assume_complete_keys
from dynamo_single.orm.schema.fields.base import SetField
from dynamo_single.orm.schema.types import DynamoModel

if TYPE_CHECKING:
    from dynamo_single.orm.query.queryset import QuerySet


_DJANGOS: Final = "django.contrib.auth.middleware.LoginRequiredMiddleware"
_OURS: Final = "dynamo_single.admin.middleware.LoginRequiredMiddleware"


def check_lists(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """W904: a list, an order, a search or a filter of an admin that would be rejected for any number of rows."""
    return [warning for model_admin in registered_admins() for warning in _warnings(model_admin)]


def registered_admins() -> Iterator[Any]:
    """Yield each ``DynamoModelAdmin`` of all sites whose model is stored in DynamoDB; none without Django's admin."""
    if not apps.is_installed("django.contrib.admin"):
        return
    from django.contrib.admin.sites import all_sites

    from dynamo_single.admin import DynamoModelAdmin

    for site in all_sites:
        for model, model_admin in site._registry.items():
            if isinstance(model_admin, DynamoModelAdmin) and is_stored_in_dynamodb(model):
                yield model_admin


def check_login_required(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """W909: Django's middleware that requires a login. It reads the user before the admin can show its error page."""
    if not apps.is_installed("django.contrib.admin"):
        return []
    from django.contrib.admin.sites import all_sites

    from dynamo_single.admin import DynamoAdminSite

    if _DJANGOS not in settings.MIDDLEWARE or not any(isinstance(site, DynamoAdminSite) for site in all_sites):
        return []
    return [
        Warning(
            f"MIDDLEWARE contains {_DJANGOS!r}, which reads the user before the view of a page runs. If "
            "DynamoDB cannot be reached, the admin returns a server error (500) instead of its own page.",
            hint=f"Put {_OURS!r} into its place.",
            id="dynamo_single.W909",
        )
    ]


def check_inlines(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """W920: an inline of a DynamoDB model whose class or site would show secrets or hidden objects."""
    if not apps.is_installed("django.contrib.admin"):
        return []
    from django.contrib.admin.sites import all_sites

    return [
        Warning(
            f"{inline.__name__} shows {inline.model._meta.label} {what}", hint, type(model_admin), "dynamo_single.W920"
        )
        for site in all_sites
        for model_admin in site._registry.values()
        for inline in model_admin.inlines
        # Django's own check reports a class that is not an inline, and an inline without a model.
        if isinstance(model := getattr(inline, "model", None), type) and is_stored_in_dynamodb(model)
        for what, hint in _shown_by(inline, model_admin)
    ]


def _shown_by(inline: type[Any], model_admin: Any) -> Iterator[tuple[str, str]]:
    from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin, DynamoStackedInline, DynamoTabularInline

    if hasattr(inline, "ct_field"):  # of django.contrib.contenttypes, which has no class of ours
        if inline.get_queryset is InlineModelAdmin.get_queryset:
            what = "as a generic inline: it shows secrets, and rows that get_queryset() of the model's admin hides."
            hint = "Name fields without secrets, and let get_queryset() of the inline return that of the model's admin."
            yield what, f"{hint} Or remove the inline: the model's admin shows the same rows."
    elif not issubclass(inline, DynamoStackedInline | DynamoTabularInline):
        base = "DynamoStackedInline" if issubclass(inline, StackedInline) else "DynamoTabularInline"
        what = "with an inline class of Django's: it shows rows that get_queryset() of the model's admin hides."
        yield what, f"Derive it from dynamo_single.admin.{base}."
    elif not isinstance(model_admin, DynamoModelAdmin) and not isinstance(model_admin.admin_site, DynamoAdminSite):
        what = "below a model in SQL on a site of Django's: its read-only fields show secrets and hidden objects."
        yield (
            what,
            "Use DynamoAdminConfig, or derive the site from dynamo_single.admin.DynamoAdminSite.",
        )


class _RefusedOption(Struct, frozen=True):
    """An unsupported option of an admin, the reason, and the fix."""

    what: str
    why: str
    hint: str


def _warnings(model_admin: Any) -> Iterator[Warning]:
    """Yield at most one warning per admin, since warnings are printed before the output of every command."""
    found = [*_refused_options(model_admin)]
    if not found:
        return
    why = f" ({found[0].why})" if len(found) == 1 else ""
    yield Warning(
        f"No key supports these options of the admin of {model_admin.model._meta.label}, so its pages would "
        f"show an error: {', '.join(each.what for each in found)}{why}.",
        hint=" ".join(dict.fromkeys(each.hint for each in found)),
        obj=type(model_admin),
        id="dynamo_single.W904",
    )


def _refused_options(model_admin: Any) -> Iterator[_RefusedOption]:
    own = type(model_admin)
    if not own.get_queryset.__qualname__.startswith("DynamoModelAdmin."):
        return
    queryset: Any = model_admin.model._default_manager.get_queryset()
    refused = _refusal(lambda: queryset)
    if refused:
        yield _RefusedOption("its list", refused, "Give the model a key that lists it, or override get_queryset().")
        return
    limit = limit_of(model_admin)
    in_memory = "" if limit else " Set list_max_in_memory = None to order and filter short lists in memory."
    if limit:
        queryset = queryset._asking(replace(queryset._asked, cached_lists=CachedLists(limit)))
    if model_admin.ordering and own.get_ordering is SecretsMixin.get_ordering:
        ordering = model_admin.ordering
        refused = _refusal(lambda: queryset.order_by(*ordering))
        if refused:
            hint = f"Leave ordering out: the list comes in the order of a key then.{in_memory}"
            yield _RefusedOption(f"ordering = {ordering!r}", refused, hint)
    for name in model_admin.search_fields if own.get_search_fields is ModelAdmin.get_search_fields else ():
        refused = _refusal(partial(_searched, queryset, name))
        if refused:
            yield _RefusedOption(f"search_fields: {name!r}", refused, "Search by strings, numbers or dates.")
    for name in model_admin.list_filter if own.get_list_filter.__qualname__.startswith("TrashPageMixin.") else ():
        refused = _refused_filter(queryset, name) if isinstance(name, str) else ""
        if refused:
            hint = "Filter by the model's own strings, numbers, dates and references, or write a SimpleListFilter."
            yield _RefusedOption(f"list_filter: {name!r}", refused, f"{hint}{in_memory}")


def _searched(queryset: QuerySet[DynamoModel], name: str) -> Any:
    model, rest = paths.end_of(queryset.model, name.lstrip("^="))
    if queryset._asked.cached_lists is not None and model is not queryset.model:
        own: Any = model._default_manager.get_queryset()
        rows = own._asking(replace(own._asked, cached_lists=queryset._asked.cached_lists))
        return search.contains_words(rows, [name.removesuffix(name.lstrip("^=")) + rest], "1")
    if queryset._asked.cached_lists is not None:
        return search.contains_words(queryset, [name], "1")
    lookup = f"{name[1:]}__exact" if name.startswith("=") else f"{name.removeprefix('^')}__startswith"
    return queryset.filter(**{lookup: "1"})


def _refused_filter(queryset: QuerySet[DynamoModel], name: str) -> str:
    """Return why Django's filter for an attribute cannot be shown or would be rejected, or an empty string."""
    options: Any = queryset.model._meta
    if paths.leads_on(queryset.model, name) or paths.leads_on(queryset.model, f"{name}__pk"):
        is_held = queryset._asked.cached_lists is not None
        return (
            "" if is_held else f"{options.label}.{name} leads to other objects, which are read up to the list's bound"
        )
    refused = _refusal(lambda: queryset.filter(**{f"{name}__isnull": False}))
    field = {each.name: each for each in options.concrete_fields}.get(name)
    if refused or field is None or field.is_relation or field.choices or isinstance(field, BooleanField):
        return refused
    if isinstance(field, SetField):
        return "" if field.member is str else f"{name} is a set of values that a URL cannot contain"
    if field.get_internal_type() in ("DateField", "DateTimeField"):
        return ""
    return _refusal(lambda: queryset.order_by(name).distinct().values_list(name, flat=True))


def _refusal(ask: Callable[[], Any]) -> str:
    """Return the first line of a queryset's error, or an empty string. Django's checks report unknown names."""
    try:
        with assume_complete_keys():
            rows.plan(state_of(ask()))
    except (NotSupported, InvalidValue) as refusal:
        return str(refusal).partition("\n")[0].rstrip(".")
    except (UnknownField, ConfigurationError):
        # Another check reports a model with invalid keys. Models that refer to it are planned with its keys.
        pass
    return ""


def check_backends(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """E012: a login backend that reads the permissions of users in DynamoDB from SQL tables."""
    if not apps.is_installed("django.contrib.auth"):
        return []
    from django.contrib.auth.backends import ModelBackend
    from django.contrib.auth.models import PermissionsMixin

    user_model: Any = get_user_model()
    if not (is_stored_in_dynamodb(user_model) and issubclass(user_model, PermissionsMixin)):
        return []
    return [
        Error(
            f"AUTHENTICATION_BACKENDS names {path}, which reads permissions from SQL tables, and "
            f"{user_model._meta.label} is stored in DynamoDB: every permission check would fail.",
            hint="Use dynamo_single.contrib.accounts.backends.EmailOrUsernameBackend, or put "
            "dynamo_single.permissions.StoredPermissions in "
            "front of the bases of your own backend.",
            obj=user_model,
            id="dynamo_single.E012",
        )
        for path in settings.AUTHENTICATION_BACKENDS
        if (backend := _backend(path)) is not None
        and issubclass(backend, ModelBackend)
        and backend.get_user_permissions is ModelBackend.get_user_permissions
    ]


def _backend(path: str) -> Any:
    try:
        return import_string(path)
    except ImportError:
        return None  # reported by E020


def check_admin_sites(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """E013: a model for an SQL database on an admin site, in a project without SQL.

    This is an error rather than a warning: every page of the model would fail, and its registration can be removed.
    """
    if not apps.is_installed("django.contrib.admin"):
        return []
    from django.contrib.admin.sites import all_sites

    from dynamo_single.admin.sites import DynamoAdminSite

    messages: list[CheckMessage] = []
    for site in all_sites:
        unusable = [model for model in site._registry if _has_no_database(model)]
        if isinstance(site, DynamoAdminSite):
            # This site omits the models that Django registers itself, such as auth.Group.
            unusable = [model for model in unusable if not _is_djangos(model)]
        messages += _unusable(site, unusable)
    return messages


def check_admin_logs(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """E017: an admin site that stores its log in SQL although the users are in DynamoDB."""
    if not apps.is_installed("django.contrib.admin"):
        return []
    from django.contrib.admin.sites import all_sites

    from dynamo_single.admin.sites import DynamoAdminSite

    user_model: Any = get_user_model()
    if not is_stored_in_dynamodb(user_model):
        return []
    return [
        Error(
            f"The admin's site {site.name!r} keeps its log in SQL, and {user_model._meta.label} is stored in DynamoDB: "
            "the site's first page would fail, and so would saving an object of an SQL model.",
            hint=(
                "Make it a dynamo_single.admin.DynamoAdminSite. For the default site, replace "
                "django.contrib.admin in INSTALLED_APPS with dynamo_single.admin.apps.DynamoAdminConfig."
            ),
            obj=site,
            id="dynamo_single.E017",
        )
        for site in all_sites
        if site._registry and not isinstance(site, DynamoAdminSite)
    ]


def _has_no_database(model: Any) -> bool:
    return not is_stored_in_dynamodb(model) and uses_engine(router.db_for_write(model))


def _is_djangos(model: object) -> bool:
    return str(model.__module__).startswith("django.contrib.")


def _unusable(site: Any, models: Sequence[Any]) -> Iterator[Error]:
    for model in models:
        hint = f"Leave {model._meta.object_name} out of the site, or keep its data in a model of dynamo_single.models."
        if _is_djangos(model):
            hint = (
                "Replace django.contrib.admin in INSTALLED_APPS with "
                "dynamo_single.admin.apps.DynamoAdminConfig: its site omits such models. Groups of users in "
                "DynamoDB are accounts.Group."
            )
        yield Error(
            f"{model._meta.label} is registered in the admin (site {site.name!r}), but no database of this "
            f"project can store it: DATABASES[{router.db_for_write(model)!r}] is dynamo_single.backend.",
            hint=hint,
            obj=model,
            id="dynamo_single.E013",
        )
