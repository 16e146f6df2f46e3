"""How a project uses the cache: its settings, and Django's own features on top of it."""

from __future__ import annotations

import io
import json
from string import Formatter
from typing import Any

import pytest
from django.contrib.sessions.backends.cache import SessionStore
from django.core.cache import caches
from django.core.cache.utils import make_template_fragment_key
from django.core.management import call_command
from django.http import HttpRequest, HttpResponse
from django.template import Context, Template
from django.test import RequestFactory, override_settings
from django.views.decorators.cache import cache_page

from dynamo_single import exceptions, models
from dynamo_single.sessions import Session, key_hash
from dynamo_single.table import SentRequest, Table
from dynamo_single.testing import assert_requests
from project.directory.models import Company
from tests.contract.caching import cache_of, items
from tests.docs import pages
from tests.docs.pages import ROOT
from tests.unit.declaring import declare, forgotten, messages

Sent = list[SentRequest]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"LOCATION": "other"}, "CACHES: LOCATION 'other' is no alias of DYNAMO_SINGLE, which declares 'default'"),
        ({"OPTIONS": {"MAX_ENTRIES": 100}}, "OPTIONS['MAX_ENTRIES'] has no meaning to DynamoCache"),
        ({"OPTIONS": {"CULL_FREQUENCY": 2}}, "there is no limit on their number"),
        ({"OPTIONS": {"large_values": "split"}}, "whose options are LARGE_VALUES, NAME, SIGN"),
        ({"OPTIONS": {"LARGE_VALUES": True}}, "OPTIONS['LARGE_VALUES'] must be 'refuse' or 'split', not True."),
        ({"OPTIONS": {"NAME": ""}}, "OPTIONS['NAME'] must be a string that is not empty, not ''."),
        ({"OPTIONS": {"NAME": 1}}, "not 1."),
        ({"OPTIONS": {"SIGN": "yes"}}, "OPTIONS['SIGN'] must be True or False, not 'yes'."),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], message: str) -> None:
    """Its first use and ``manage.py check`` raise the error."""
    with cache_settings(settings):
        with pytest.raises(exceptions.ConfigurationError) as raised:
            caches["default"].get("key")
        assert message in str(raised.value)
        with pytest.raises(exceptions.ConfigurationError):
            call_command("check", stdout=io.StringIO())


def cache_settings(settings: dict[str, Any]) -> Any:
    """Return these settings without a cache."""
    backend = {"BACKEND": "dynamo_single.cache.DynamoCache", "LOCATION": "default"}
    return override_settings(CACHES={"default": {**backend, **settings}})


@pytest.mark.parametrize("settings", [{}, {"LOCATION": ""}, {"OPTIONS": {}}, {"OPTIONS": {"NAME": "pages"}}])
def test_right_settings(table: Table, settings: dict[str, Any]) -> None:
    """The default location is the default table."""
    with cache_of(**settings) as cache:
        cache.set("key", 1)
        assert cache.get("key") == 1


def test_the_cache_follows_the_table(table: Table) -> None:
    """Creating and closing the cache does not send requests: the current settings name the table."""
    with assert_requests(0), cache_of() as cache:
        cache.close()
    with cache_of() as cache:
        elsewhere = override_settings(DYNAMO_SINGLE={"default": "dynamodb://127.0.0.1:1/gone?region=us-east-1"})
        with elsewhere, pytest.raises(exceptions.EndpointUnreachable):
            cache.get("key")
        assert cache.get("key") is None


def test_models_do_not_see_the_cache(table: Table) -> None:
    """A Scan for a model's items, and a count of all, live with items of the cache in the table."""
    Company.objects.create(company_id="c1", name="Acme")
    with cache_of(OPTIONS={"LARGE_VALUES": "split"}) as cache:
        cache.set_many({"a": 1, "b": bytes(500_000)})
        cache.clear()
    assert [company.pk for company in Company.objects.using_index("primary").allow_scan()] == ["c1"]
    out = io.StringIO()
    call_command("dynamo_status", count=True, stdout=out)
    counted = dict(line.split() for line in out.getvalue().splitlines() if line.startswith("Cache."))
    assert counted == {"Cache.Entry": "2", "Cache.Part": "2", "Cache.Generations": "1"}


def test_pages_are_cached(table: Table) -> None:
    """``cache_page`` stores a whole response, which is created once."""
    made: list[int] = []

    @cache_page(60)
    def view(request: HttpRequest) -> HttpResponse:
        made.append(1)
        return HttpResponse(f"page {len(made)}")

    with cache_of():
        answers = [view(RequestFactory().get("/page", {"q": "1"})).content for _ in range(3)]
        other = view(RequestFactory().get("/page", {"q": "2"})).content
    assert answers == [b"page 1"] * 3
    assert other == b"page 2"


def test_fragments_are_cached(table: Table) -> None:
    """The template tag ``cache`` stores its output until its key is deleted."""
    template = Template("{% load cache %}{% cache 60 menu user %}{{ text }}{% endcache %}")
    with cache_of() as cache:
        assert template.render(Context({"user": "mike", "text": "one"})) == "one"
        assert template.render(Context({"user": "mike", "text": "two"})) == "one"
        assert template.render(Context({"user": "anna", "text": "two"})) == "two"
        cache.delete(make_template_fragment_key("menu", ["mike"]))
        assert template.render(Context({"user": "mike", "text": "three"})) == "three"


def test_djangos_cache_sessions(table: Table) -> None:
    """``django.contrib.sessions.backends.cache`` keeps sessions in it."""
    with cache_of():
        session = SessionStore()
        session["colour"] = "green"
        session.save()
        assert SessionStore(session.session_key)["colour"] == "green"
        session.flush()
        assert not SessionStore().exists(session.session_key)


def test_sessions_and_cache_share_a_table(table: Table) -> None:
    """Clearing the cache leaves the sessions of the table alone."""
    from dynamo_single.sessions import SessionStore as Store

    session = Store()
    session["colour"] = "green"
    session.save()
    with cache_of() as cache:
        cache.clear()
    assert Session.objects.get(pk=key_hash(str(session.session_key))).get_decoded() == json.loads('{"colour": "green"}')


def test_the_layout_is_documented(table: Table) -> None:
    """The page of the stored layout names exactly the attributes of the cache's items."""
    with cache_of(OPTIONS={"LARGE_VALUES": "split"}) as cache:
        cache.set_many({"a": 1, "b": b"", "c": bytes(500_000)})
        cache.clear()
        cache.clear(version=2)
    stored = {name for item in items(table) for name in item} - {"pk", "sk", "itemType"}
    page = ROOT / "docs/reference/stored-layout.md"
    listed = {name for row in pages.table(page, "Cache") for name in pages.code(row[0])}
    assert {"version:<version>" if name.startswith("version:") else name for name in stored} == listed


@pytest.mark.parametrize(
    ("keys", "refused"),
    [
        (("CACHE#{a}#{b}", "#ENTRY"), True),
        (("CACHE#{a}", "#GENERATIONS"), True),
        (("CACHE#{a}#{b}", "#PART#{c}#{d}"), True),
        (("CACHE#{a}#{b}", "#METADATA"), False),
        (("{a}", "#ENTRY"), False),
        (("CACHED#{a}#{b}", "#ENTRY"), False),
    ],
)
def test_no_model_may_write_into_the_cache(keys: tuple[str, str], refused: bool) -> None:
    """A start-up check rejects a model whose keys can collide with the cache's."""
    with forgotten():
        names = {each[1] for part in keys for each in Formatter().parse(part) if each[1]}
        model = declare("Cached", keys, **{name: models.UnicodeAttribute() for name in sorted(names)})
        found = [message for identifier, message in messages(model) if identifier == "dynamo_single.E007"]
    assert [("of an item of the cache" in message) for message in found] == [True] * refused
