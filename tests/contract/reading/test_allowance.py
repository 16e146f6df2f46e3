"""A filter over a whole model's partition logs a warning, and past the limit it raises an error, for every read."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core import mail
from django.core.management import BaseCommand, call_command
from django.test import override_settings

from dynamo_single.exceptions import ConfigurationError, InvalidValue, TooManyReads
from dynamo_single.orm.reading import budget
from dynamo_single.table import Table
from dynamo_single.testing import intercept
from project.directory.models import Company, Person

LOGGER = "dynamo_single.reads"


@pytest.fixture(autouse=True)
def companies(table: Table) -> None:
    """Ten companies, of which the last is public."""
    Company.objects.bulk_create(
        Company(company_id=f"c{number}", name=f"Company {number}", public=number == 9) for number in range(10)
    )


def limits(**values: Any) -> Any:
    """The settings of costs."""
    return override_settings(DYNAMO_SINGLE_COSTS=values)


def warnings(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Return the warnings."""
    return [record for record in caplog.records if record.name == LOGGER]


@contextmanager
def small_pages(table: Table, size: int) -> Iterator[list[str]]:
    """Limit pages of DynamoDB to ``size`` items within the block; yield the operations that requested pages."""
    inside: list[None] = []
    asked: list[str] = []

    def interceptor(operation: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        if operation != "Query" or inside:
            return None
        inside.append(None)
        asked.append(operation)
        try:
            return table.call(operation, {**params, "Limit": min(size, params.get("Limit", size))})
        finally:
            inside.pop()

    with intercept(interceptor):
        yield asked


def public() -> Any:
    """Filter by an attribute without a key."""
    return Company.objects.filter(public=True)


#: Every kind of read, each of which discards nine items for one match.
WAYS: dict[str, Any] = {
    "list": lambda: list(public()),
    "iterator": lambda: list(public().iterator()),
    "first": lambda: public().first(),
    "get": lambda: public().get(),
    "exists": lambda: public().exists(),
    "count": lambda: public().count(),
    "values": lambda: list(public().values("name")),
    "sorted": lambda: list(public().order_by("founded").allow_in_memory()),
    "computed": lambda: public().allow_in_memory().dates("created_at", "year")[:1],
    "page": lambda: public().page(5),
    "update": lambda: public().update(stock="A"),
    "delete": lambda: public().delete(),
    "union": lambda: list(public() | Company.objects.filter(stock="none")),
    "a page of a union": lambda: (public() | Company.objects.filter(stock="none")).page(5),
    "alist": lambda: async_to_sync(alist)(),
    "acount": lambda: async_to_sync(public().acount)(),
    "afirst": lambda: async_to_sync(public().afirst)(),
    "apage": lambda: async_to_sync(public().apage)(5),
    "aupdate": lambda: async_to_sync(public().aupdate)(stock="A"),
    "adelete": lambda: async_to_sync(public().adelete)(),
}


async def alist() -> list[Company]:
    """The objects in an event loop."""
    return [company async for company in public()]


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_read_warns_once(way: str, table: Table, caplog: pytest.LogCaptureFixture) -> None:
    """Past ``WARN_READS`` one evaluation gives one warning, however many pages it takes."""
    with limits(WARN_READS=5), small_pages(table, 2):
        list(WAYS[way]()) if way == "computed" else WAYS[way]()
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_read_ends_past_the_limit(way: str, table: Table) -> None:
    """Past ``MAX_READS``, the read raises an error instead of requesting another page."""
    with limits(MAX_READS=5), small_pages(table, 2) as pages, pytest.raises(TooManyReads):
        list(WAYS[way]()) if way == "computed" else WAYS[way]()
    # A search for one match starts with a page of one item.
    assert len(pages) == (4 if way in {"first", "exists", "afirst"} else 3)


def test_the_error_names_the_ways_out(table: Table) -> None:
    """The error names the query and the model, and the ways to allow more."""
    with limits(MAX_READS=5), pytest.raises(TooManyReads) as raised:
        list(public())
    assert raised.value.limit == 5
    assert str(raised.value) == (
        "directory.Company: the query read and discarded more than 5 items, and MAX_READS in "
        "DYNAMO_SINGLE_COSTS allows 5. It "
        "reads the whole of directory.Company. Add a key that supports the query, request fewer objects, or raise "
        "the limit for this queryset with .allow_reads(n). explain() shows the requests."
    )


def test_the_warning_has_its_numbers_and_the_explanation(caplog: pytest.LogCaptureFixture) -> None:
    """The record has the model, the numbers and the queryset's ``explain()`` as values of their own."""
    queryset = public()
    with limits(WARN_READS=5):
        list(queryset)
    (record,) = warnings(caplog)
    found = vars(record)
    assert record.levelno == logging.WARNING
    assert (found["model"], found["items_read"], found["items_for_nothing"]) == ("directory.Company", 10, 9)
    assert found["reads_whole_model"] is True
    assert found["explanation"] == queryset.explain()
    assert record.getMessage() == (
        "directory.Company: discarded 9 of 10 items read so far; the query reads the whole of "
        f"directory.Company\n{queryset.explain()}"
    )


def test_keys_stay_out_of_the_log_where_the_settings_say_so(caplog: pytest.LogCaptureFixture) -> None:
    """With ``SHOW_KEYS`` off the warning has no conditions and no keys."""
    with limits(WARN_READS=5, SHOW_KEYS=False):
        list(public())
    (record,) = warnings(caplog)
    assert vars(record)["explanation"] == ""
    assert "\n" not in record.getMessage()


@pytest.mark.parametrize("number", [9, 10])
def test_as_many_as_allowed_is_no_matter(number: int, caplog: pytest.LogCaptureFixture) -> None:
    """Nine discarded items do not exceed either limit."""
    with limits(WARN_READS=number, MAX_READS=number):
        assert len(list(public())) == 1
    assert not warnings(caplog)


def test_both_settings_can_be_off(caplog: pytest.LogCaptureFixture) -> None:
    """``None``, the default of the limit, neither warns nor raises an error."""
    with limits(WARN_READS=None):
        list(public())
    assert not warnings(caplog)


def test_what_is_wanted_is_not_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Returned objects do not count as discarded."""
    with limits(WARN_READS=1, MAX_READS=1):
        assert len(list(Company.objects.all())) == 10
        assert Company.objects.count() == 10
        assert len(list(Company.objects.filter(name__startswith="Company"))) == 10
    assert not warnings(caplog)


def test_one_queryset_may_read_more(caplog: pytest.LogCaptureFixture) -> None:
    """``allow_reads()`` replaces the setting, and allowed reads do not log a warning."""
    with limits(WARN_READS=1, MAX_READS=5):
        assert len(public().allow_reads(9)) == 1
    assert not warnings(caplog)


def test_one_queryset_may_be_allowed_less() -> None:
    """The limit applies to the queryset even if the setting does not limit reads."""
    with pytest.raises(TooManyReads, match=r"allow_reads\(\) allowed 8"):
        list(Company.objects.allow_reads(8).filter(public=True))


@pytest.mark.parametrize("number", [0, -1, True, "9", None, 1.5])
def test_what_is_no_number_of_items_is_refused(number: Any) -> None:
    """At once, and by name."""
    with pytest.raises(InvalidValue, match=r"allow_reads\(\) takes the maximum number of discarded items"):
        Company.objects.allow_reads(number)


@pytest.mark.parametrize("name", ["WARN_READS", "MAX_READS"])
def test_a_wrong_setting_is_told_by_its_name(name: str) -> None:
    """A limit is a number from 1 up, or None."""
    with limits(**{name: 0}), pytest.raises(ConfigurationError, match=name):
        list(public())


def test_a_scan_that_was_allowed_is_allowed(caplog: pytest.LogCaptureFixture) -> None:
    """``allow_scan()`` allows reading everything."""
    with limits(WARN_READS=1, MAX_READS=1):
        assert not list(Person.objects.filter(role="manager").without_index("by_name").allow_scan())
    assert not warnings(caplog)


def test_iterating_counts_what_has_come(table: Table, caplog: pytest.LogCaptureFixture) -> None:
    """A partly consumed queryset counts only the items it has read."""
    found = Company.objects.filter(name__startswith="Company").exclude(name="Company 0")
    with limits(WARN_READS=1, MAX_READS=1), small_pages(table, 2) as pages:
        assert next(iter(found.iterator())).name == "Company 1"
    assert len(pages) == 1
    assert not warnings(caplog)


def test_each_evaluation_counts_for_itself(caplog: pytest.LogCaptureFixture) -> None:
    """Another evaluation of the queryset warns again."""
    with limits(WARN_READS=5):
        list(public())
        list(public())
    assert len(warnings(caplog)) == 2


def test_explain_says_that_the_whole_model_is_read() -> None:
    """A filter with a key that lists the model reads everything."""
    assert "(it reads all of directory.Company: discarded items are read and charged" in public().explain()


def test_explain_does_not_say_so_of_a_part_of_it() -> None:
    """A beginning of the sort key, or one partition of many, is not the whole."""
    assert "the whole of" not in public().filter(name__startswith="C").explain()
    assert "the whole of" not in Person.objects.filter(company="c1", role="manager").explain()


@pytest.fixture
def five(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the default limit to five items."""
    monkeypatch.setattr(budget, "MAX_DISCARDED", 5)


@pytest.mark.usefixtures("five")
def test_unset_limit_holds_in_tests() -> None:
    with pytest.raises(TooManyReads, match="which DEBUG and tests set automatically, allows 5"):
        list(public())


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize(("debug", "ends"), [(True, True), (False, False)])
def test_unset_limit_follows_debug(monkeypatch: pytest.MonkeyPatch, debug: bool, ends: bool) -> None:
    """Outside of tests, which have an outbox of mails."""
    monkeypatch.delattr(mail, "outbox")
    with override_settings(DEBUG=debug), pytest.raises(TooManyReads) if ends else nullcontext():
        list(public())


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize("most", [None, 9])
def test_limit_that_is_set_holds_everywhere(most: int | None) -> None:
    """This includes ``None``, which disables the limit."""
    with limits(MAX_READS=most):
        assert len(public()) == 1


class Reading(BaseCommand):
    """A command that reads, by itself or in a thread or loop of its own."""

    def handle(self, *args: object, **options: object) -> str:
        """Return how many it found each way."""
        with ThreadPoolExecutor(1) as pool:
            found = [len(public()), len(pool.submit(list, public()).result()), len(async_to_sync(alist)())]
        return str(found)


@pytest.mark.usefixtures("five")
def test_command_is_exempt_from_the_unset_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Reading, "__module__", "project.management.commands.latest")
    call_command(Reading())
    assert capsys.readouterr().out == "[1, 1, 1]\n"


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize("module", ["runserver", "runserver_plus", "test"])
def test_command_that_serves_or_tests_is_not_exempt(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    monkeypatch.setattr(Reading, "__module__", f"project.management.commands.{module}")
    with pytest.raises(TooManyReads):
        call_command(Reading())


@pytest.mark.usefixtures("five")
def test_admin_is_exempt_from_the_unset_limit(staff: Any) -> None:
    """A page that a filter narrows reads the whole list."""
    page = staff("directory.view_company").get("directory/company/?public__exact=1")
    assert page.status_code == 200
    assert page.context["cl"].result_count == 1
