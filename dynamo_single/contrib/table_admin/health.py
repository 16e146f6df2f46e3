"""The health of a table: errors of the table itself, open and unapplied migrations, and inconsistent items.

The page does not write; each problem names its repair. Items are checked part by part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from django.core import signing
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.crypto import salted_hmac
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.admin.secrets import Masks
from dynamo_single.admin.sites import DynamoAdminSite
from dynamo_single.admin.viewing.pages import allows, guarded, in_words
from dynamo_single.admin.viewing.rules import sees_all, sees_whole_table
from dynamo_single.conf import aliases
from dynamo_single.contrib.doctor.findings import Finding, FindingKind
from dynamo_single.contrib.doctor.walk import examine
from dynamo_single.contrib.table_admin import views, visible_items
from dynamo_single.contrib.table_admin.item_view import keys_of, model_shown
from dynamo_single.contrib.table_admin.table_reads import Place
from dynamo_single.contrib.table_admin.visible_items import alias_of
from dynamo_single.costs import Costs, measure_requests
from dynamo_single.exceptions import UnexpectedItem
from dynamo_single.orm.requests.actions import Item, ItemKey
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.rollout.states import PUBLIC
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.table import schema
from dynamo_single.table.flow import run
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table, get_table

#: The items that one page of the check reads.
PAGE: Final = 500


class Trouble(Struct, frozen=True):
    """A problem, and the command that repairs it, or an empty string if the text says what to do."""

    kind: Literal["table", "migration", "open", "not filled"]
    text: str
    repair: str = ""


def troubles(table: Table) -> Iterator[Trouble]:
    """Yield the problems of a table as a whole: DescribeTable, DescribeTimeToLive and a GetItem.

    Django also reads which migrations are applied.
    """
    found = schema.differences(table.settings, schema.observe(table))
    for each in found:
        if each.repair != "unneeded":
            automatic = each.repair == "automatic"
            yield Trouble("table", each.said.translated(), table.settings.command("dynamo_setup") if automatic else "")
    if any(each.kind == "table" for each in found):
        return
    for name in unapplied():
        yield Trouble("migration", _("%(name)s is not applied.") % {"name": name}, "manage.py migrate")
    try:
        state = run(knowledge.state_of(table))
    except UnexpectedItem as error:
        yield Trouble("migration", str(error))
        return
    for form in state.forms.values():
        for change in form.opened:
            label = change.parameters.get("label", "")
            text = _("%(migration)s is not finished: %(label)s.") % {"migration": change.migration, "label": label}
            yield Trouble("open", text, "manage.py migrate")
        for what in (*_open(form.keys), *_open(form.rules), *form.unfilled):
            text = _("Not every item of %(model)s has %(what)s yet.") % {"model": form.label, "what": what}
            yield Trouble("not filled", text, "manage.py migrate")


def unapplied() -> list[str]:
    """Return the unapplied migrations of the project, as ``runserver`` does; none without a database."""
    try:
        executor = MigrationExecutor(connections[DEFAULT_DB_ALIAS])
    except ImproperlyConfigured:
        return []  # as in runserver
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _backwards in plan]


#: The kinds of findings in the user's language.
KINDS: Final[Mapping[FindingKind, Any]] = {
    "unknown item": gettext_lazy("unknown item"),
    "record without type": gettext_lazy("record without type"),
    "unreadable item": gettext_lazy("unreadable item"),
    "primary key": gettext_lazy("primary key"),
    "shard of a spelling": gettext_lazy("shard of a spelling"),
    "half index key": gettext_lazy("half index key"),
    "index key": gettext_lazy("index key"),
    "attribute left over": gettext_lazy("attribute left over"),
    "live key in the trash": gettext_lazy("live key in the trash"),
    "canonical copy": gettext_lazy("canonical copy"),
    "extracted value": gettext_lazy("extracted value"),
    "orphan claim": gettext_lazy("orphan claim"),
    "missing claim": gettext_lazy("missing claim"),
    "claim of another": gettext_lazy("claim of another"),
    "value held twice": gettext_lazy("value held twice"),
    "claim's expiry": gettext_lazy("claim's expiry"),
    "missing derived item": gettext_lazy("missing derived item"),
    "derived item": gettext_lazy("derived item"),
    "derived item left over": gettext_lazy("derived item left over"),
    "copy": gettext_lazy("copy"),
    "copies due": gettext_lazy("copies due"),
    "move due": gettext_lazy("move due"),
    "counter": gettext_lazy("counter"),
    "edge without end": gettext_lazy("edge without end"),
    "child without parent": gettext_lazy("child without parent"),
    "reference to a missing object": gettext_lazy("reference to a missing object"),
    "left in the trash": gettext_lazy("left in the trash"),
}


class ShownFinding(Struct, frozen=True):
    """The visible parts of a finding. If ``key`` contains a secret, it is ``None`` and the text omits it."""

    kind: FindingKind
    text: str
    model: Any
    key: ItemKey | None
    is_repaired: bool

    @property
    def label(self) -> str:
        """The kind of the finding in the user's language."""
        return str(KINDS[self.kind])


class Checked(Struct, frozen=True):
    """A part of the items: how many were read, the findings, and the next position, ``None`` at the end."""

    read: int
    findings: tuple[ShownFinding, ...]
    after: str | None


def checked(table: Table, after: str, masks: Masks) -> Checked:
    """Return the findings for the next ``PAGE`` items: see ``doctor.walk.examine()``."""
    asked = ("health", table.settings.alias)
    found = examine(table, limit=PAGE, after=Place.of(after, asked).key if after else None)
    alias = table.settings.alias
    findings = tuple(_shown(alias, each, found.items.get(each.key), masks) for each in found.findings)
    place = None if found.after is None else Place(asked, dict(found.after)).text()
    return Checked(len(found.items), findings, place)


class Sums(Struct, frozen=True):
    """What a check has read, found and consumed so far, and about how many items the table has; 0 if unknown."""

    read: int = 0
    found: int = 0
    requests: int = 0
    units: float = 0.0
    total: int = 0

    def text(self, request: HttpRequest) -> str:
        """Return the sums for an address, signed for the user."""
        return signing.dumps([self.read, self.found, self.requests, self.units, self.total], salt=_salt(request))

    @classmethod
    def of(cls, request: HttpRequest) -> Sums | None:
        """Return the sums of the address; ``None`` if there are none, or another user's.

        Only a page with sums continues by itself, because each part costs.
        """
        try:
            return cls(*signing.loads(request.GET.get("sum", ""), salt=_salt(request)))
        except signing.BadSignature:
            return None

    def plus(self, part: Checked, found: int, costs: Costs) -> Sums:
        """Return the sums after another part."""
        return Sums(
            self.read + part.read,
            self.found + found,
            self.requests + costs.requests,
            self.units + costs.read_units,
            self.total,
        )


def _salt(request: HttpRequest) -> str:
    return f"dynamo_single.admin.health:{request.user.pk}"


def item_count(table: Table) -> int:
    """Return about how many items a table has: DescribeTable, whose number DynamoDB updates every six hours."""
    return int(table.send(Request("DescribeTable", {}))["Table"].get("ItemCount", 0))


def _shown(alias: str, finding: Finding, item: Item | None, masks: Masks) -> ShownFinding:
    # The message about an unidentified item may contain a secret, or the key of a hidden model.
    model = None if item is None else model_shown(alias, item)
    is_named = item is not None and next(keys_of(alias, item, (), masks)).place is not None
    text, key = (finding.said.translated(), finding.key) if is_named else (MASK, None)
    return ShownFinding(finding.kind, text, model, key, finding.is_repairable)


def _open(phases: Mapping[str, str]) -> Iterator[str]:
    return (name for name, phase in phases.items() if phase != PUBLIC)


def urls(site: DynamoAdminSite) -> list[URLPattern]:
    """Return the address of the page."""
    return [path("dynamodb/health/", guarded(site, visible_items.HEALTH, health_page), name="dynamodb_health")]


def health_page(site: DynamoAdminSite, request: HttpRequest) -> HttpResponseBase:
    """Return the problems of the table, or with ``check`` in the address the findings of the next 500 items."""
    alias = alias_of(request)
    table = get_table(alias)
    context: dict[str, Any] = {**site.each_context(request), "title": _("Health"), "alias": alias, "aliases": aliases()}
    is_costed = sees_whole_table(site, request, alias)
    with measure_requests() as costs:
        if "check" in request.GET:
            context |= _check(site, request, table, is_counted=is_costed)
        else:
            context |= {"troubles": list(troubles(table)), "begin": Sums().text(request)}
    if is_costed:
        context["costs"] = in_words(costs)
    return TemplateResponse(request, "dynamo_single/admin/table/health.html", context)


def _check(site: DynamoAdminSite, request: HttpRequest, table: Table, *, is_counted: bool) -> dict[str, Any]:
    """Return the findings of a part, the sums so far, and the address of the next part."""
    before, alias = Sums.of(request), table.settings.alias
    after = request.GET["check"]
    with measure_requests() as costs:
        found = checked(table, after, views.masks_of(site))
    sums = before or Sums()
    if is_counted and not sums.total:
        sums = replace(sums, total=item_count(table))
    visible = [each for each in found.findings if sees_all(site, request, each.model)]
    sums = sums.plus(found, len(visible), costs)
    asked = {} if alias == DEFAULT_DB_ALIAS else {"alias": alias}
    return {
        "checked": found,
        "findings": [(each, _item_url(site, request, alias, each)) for each in visible],
        "sums": sums,
        "total": max(sums.total, sums.read),
        "is_counted": is_counted,
        "goes_on": before is not None,
        "next": urlencode({**asked, "check": found.after, "sum": sums.text(request)}) if found.after else "",
        "owner": salted_hmac(
            "dynamo_single.admin.health", f"{request.user.pk}:{alias}", algorithm="sha256"
        ).hexdigest(),
    }


def _item_url(site: DynamoAdminSite, request: HttpRequest, alias: str, finding: ShownFinding) -> str:
    if finding.key is None or not allows(request, visible_items.TABLE):
        return ""
    return views.item_url(site, alias, finding.key)
