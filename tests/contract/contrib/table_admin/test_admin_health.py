"""The page of health: the table, migrations, and items that do not fit together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock

import pytest
from django.contrib.auth import get_user_model

from dynamo_single.contrib.table_admin import health
from dynamo_single.exceptions import FormNotApplied, KeyNotFilled
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.rollout.states import OpenChange, StoredForm
from dynamo_single.orm.schema import bindings
from dynamo_single.orm.schema.registry import layout_of
from dynamo_single.table import Request, Table
from dynamo_single.testing import intercept
from project.directory.models import Company
from tests.contract.conftest import Pages, text_of

HEALTH = "dynamo_single.view_health"
#: The text of a page whose items have another schema than the models.
CHANGING = "The database is being changed The stored data does not match this version of the site"


def broken(table: Table, **key: str) -> None:
    """Make an item's index key differ from its attributes."""
    table.send(
        Request(
            "UpdateItem",
            {
                "Key": {name: {"S": text} for name, text in key.items()},
                "UpdateExpression": "SET gs1sk = :wrong",
                "ExpressionAttributeValues": {":wrong": {"S": "wrong"}},
            },
        )
    )


def findings_of(shown: Any) -> list[tuple[str, Any]]:
    """Return the findings on a page of the check."""
    return [(finding.kind, finding.key) for finding, _ in shown.context["findings"]]


def test_a_table_that_is_as_it_should_be(pages: Pages) -> None:
    """The page has no findings."""
    shown = pages.get("dynamodb/health/")
    assert shown.context["troubles"] == []
    assert "There are no open migrations." in text_of(shown)


def test_the_page_as_a_whole_reads_descriptions_and_one_item(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Django's read of applied migrations comes in addition."""
    monkeypatch.setattr(health, "unapplied", list)
    pages.get("dynamodb/health/", sends=["DescribeTable", "DescribeTimeToLive", "GetItem"])


def test_what_is_open_names_its_command(pages: Pages, table: Table) -> None:
    """This includes an unfinished change of items, and an incomplete key."""
    change = OpenChange("add_key", "shop.0002_by_colour", {"label": "Add key by_colour"})
    form = StoredForm("shop.lamp", "LAMP", keys={"gs2 COLOUR": "written"}, opened=(change,))
    knowledge.change(table, lambda state: state.with_form("Lamp", form))
    shown = pages.get("dynamodb/health/").context["troubles"]
    assert [(each.kind, each.repair) for each in shown] == [
        ("open", "manage.py migrate"),
        ("not filled", "manage.py migrate"),
    ]


def test_a_migration_that_is_not_applied_is_named(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command."""
    monkeypatch.setattr(health, "unapplied", lambda: ["shop.0003_more"])
    (trouble,) = pages.get("dynamodb/health/").context["troubles"]
    assert (trouble.text, trouble.repair) == ("shop.0003_more is not applied.", "manage.py migrate")


def test_a_difference_of_the_table_names_its_command(pages: Pages, table: Table) -> None:
    """Time to Live is disabled."""
    specification = {"AttributeName": "expiresAt", "Enabled": False}
    table.send(Request("UpdateTimeToLive", {"TimeToLiveSpecification": specification}))
    try:
        (trouble,) = pages.get("dynamodb/health/").context["troubles"]
    finally:
        switched_on = {"TimeToLiveSpecification": {**specification, "Enabled": True}}
        table.send(Request("UpdateTimeToLive", switched_on))
    assert (trouble.kind, trouble.repair) == ("table", "manage.py dynamo_setup")


def test_items_that_do_not_fit_are_found_part_by_part(
    pages: Pages, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part has a separate page, and the last page shows the end of the table."""
    for number in range(3):
        Company.objects.create(company_id=f"c{number}", name="Acme")
        broken(table, pk=f"COMPANY#c{number}", sk="#METADATA")
    monkeypatch.setattr(health, "PAGE", 2)
    shown = pages.get("dynamodb/health/?check=")
    found = findings_of(shown)
    parts = 1
    while (after := shown.context["checked"].after) is not None:
        shown = pages.get(f"dynamodb/health/?check={after}")
        found += findings_of(shown)
        parts += 1
    assert sorted(found) == [("index key", (f"COMPANY#c{number}", "#METADATA")) for number in range(3)]
    assert parts > 2
    assert "end of the table" in text_of(shown)


def test_check_sums_up_parts(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part shows the items so far, their approximate total, and the cost."""
    for number in range(5):
        Company.objects.create(company_id=f"c{number}", name="Acme")
    monkeypatch.setattr(health, "PAGE", 2)
    shown, read = pages.get("dynamodb/health/?check="), []
    while True:
        read.append(shown.context["sums"].read)
        if not shown.context["next"]:
            break
        shown = pages.get(f"dynamodb/health/?{shown.context['next']}")
    assert read == sorted({*read})
    assert read[-1] >= 5
    assert f"Checked {read[-1]} of about" in text_of(shown)
    assert shown.context["sums"].requests >= len(read)


def test_check_continues_from_a_page_only(pages: Pages, staff: Any) -> None:
    """An address without the user's sums reads one part and waits."""
    begin = pages.get("dynamodb/health/").context["begin"]
    address = f"dynamodb/health/?check=&sum={begin}"
    assert b"data-goes-on" in pages.get(address).content
    assert b"data-goes-on" not in pages.get("dynamodb/health/?check=").content
    assert b"data-goes-on" not in staff(HEALTH).get(address).content


def test_check_hides_sums_from_users_of_a_part(staff: Any) -> None:
    """The user must not see the number of items or the cost of reading them."""
    assert "Checked" not in text_of(staff(HEALTH).get("dynamodb/health/?check="))


def test_an_item_of_an_unknown_type_is_listed(pages: Pages, table: Table) -> None:
    """A user has to decide what to do with it."""
    item = {"pk": {"S": "OTHER#1"}, "sk": {"S": "#"}, "itemType": {"S": "Other"}}
    table.send(Request("PutItem", {"Item": item}))
    shown = pages.get("dynamodb/health/?check=")
    assert ("unknown item", ("OTHER#1", "#")) in findings_of(shown)
    assert "requires a decision" in text_of(shown)


def test_findings_of_hidden_models_are_left_out(staff: Any, table: Table) -> None:
    """Their keys and values are no business of theirs."""
    Company.objects.create(company_id="c1", name="Acme")
    broken(table, pk="COMPANY#c1", sk="#METADATA")
    shown = staff(HEALTH).get("dynamodb/health/?check=")
    assert findings_of(shown) == []
    assert "COMPANY#c1" not in text_of(shown)


def test_the_secret_in_a_finding_is_masked(pages: Pages, table: Table) -> None:
    """An unreadable session is listed without its key."""
    item = {"pk": {"S": "SESSION#hidden-key"}, "sk": {"S": "#METADATA"}, "itemType": {"S": "Session"}}
    table.send(Request("PutItem", {"Item": item}))
    shown = pages.get("dynamodb/health/?check=")
    assert any(key is None for _, key in findings_of(shown))
    assert b"hidden-key" not in shown.content


def test_the_page_has_a_permission_of_its_own(staff: Any) -> None:
    """403 without it."""
    assert staff("dynamo_single.view_table").get("dynamodb/health/").status_code == 403


def test_the_permission_opens_the_page(staff: Any) -> None:
    """And the index leads to it."""
    pages = staff(HEALTH)
    assert pages.get("dynamodb/health/").status_code == 200
    assert b"/admin/dynamodb/health/" in pages.get("").content


@pytest.mark.parametrize("query", ["alias=other", "check=made-up", "check=%00"])
def test_what_no_page_of_ours_asks_is_refused(pages: Pages, query: str) -> None:
    """400."""
    assert pages.get(f"dynamodb/health/?{query}").status_code == 400


@contextmanager
def refused(name: str, error: Exception) -> Iterator[None]:
    """Make the state reject companies when it is read again; the user matches the schema."""
    answer = getattr(knowledge, name)

    def refuse(asked: Any, *others: Any) -> Any:
        if asked is Company:
            raise error
        return answer(asked, *others)

    knowledge.forget()
    bindings.begin_generation()
    with mock.patch.object(knowledge, name, refuse):
        yield


@contextmanager
def unreadable(model: Any, error: Exception) -> Iterator[None]:
    """Make the items of a model unreadable."""
    head = layout_of(model).primary.partition.head

    def refuse(operation: str, params: Any) -> None:
        if operation == "GetItem" and params["Key"]["pk"]["S"].startswith(head):
            raise error

    with intercept(refuse):
        yield


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (FormNotApplied("x"), 503, CHANGING),
        (KeyNotFilled("x"), 400, "The list of companies is being rebuilt. Try again later."),
    ],
)
def test_a_list_of_items_of_another_form_says_so(pages: Pages, error: Exception, status: int, said: str) -> None:
    """503 in words for people; 400 where only this way to list them is not ready yet."""
    Company.objects.create(company_id="acme", name="Acme")
    with refused("binding_now", error):
        answer = pages.client.get("/admin/directory/company/")
    assert (answer.status_code, said in text_of(answer)) == (status, True)
    assert b"Traceback" not in answer.content


@pytest.mark.parametrize("error", [FormNotApplied("x"), KeyNotFilled("x")])
@pytest.mark.parametrize(
    "refusing", [partial(refused, "binding_for"), partial(unreadable, Company)], ids=["asked", "read"]
)
def test_an_object_of_another_form_says_so(pages: Pages, refusing: Any, error: Exception) -> None:
    """Status 503 with a clear text, whether the state or the item shows the difference."""
    Company.objects.create(company_id="acme", name="Acme")
    with refusing(error):
        answer = pages.client.get("/admin/directory/company/acme/change/")
    assert (answer.status_code, CHANGING in text_of(answer)) == (503, True)
    assert b"Traceback" not in answer.content


@pytest.mark.parametrize("path", ["directory/company/", "directory/company/acme/change/"])
def test_a_user_of_another_form_is_shown_no_page(pages: Pages, path: str) -> None:
    """An unreadable item of the user leads to status 503 too."""
    with unreadable(get_user_model(), FormNotApplied("x")):
        answer = pages.client.get(f"/admin/{path}")
    assert (answer.status_code, CHANGING in text_of(answer)) == (503, True)
    assert b"Traceback" not in answer.content
