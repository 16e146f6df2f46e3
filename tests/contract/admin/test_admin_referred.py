"""Referenced objects of forms are read in batches for all forms of a page, when it is shown and submitted."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django import forms
from django.contrib.admin.sites import all_sites
from django.urls import path

from dynamo_single import models
from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin, DynamoTabularInline
from dynamo_single.testing import capture_requests
from tests.catalog.models import Sample
from tests.catalog.servers import GameMember, GamePlayer, GameServer
from tests.contract.admin.test_admin_merging import form_of
from tests.contract.conftest import Pages, Registering
from tests.unit.declaring import declare, forgotten

CHANGE = "catalog/gameserver/1/change/"
#: The server, and its members.
READ = ["GetItem", "Query"]


class MemberInline(DynamoTabularInline):
    """Members of a server, each with its player."""

    model = GameMember
    fields = ("player", "role")


class ServerAdmin(DynamoModelAdmin):
    """A page of a server."""

    fields = ("name",)
    inlines = (MemberInline,)


class SampleAdmin(DynamoModelAdmin):
    """A list with an editable reference, and a page with two references to one model."""

    list_display = ("sample_id", "parent")
    list_editable = ("parent",)
    fields = ("text", "parent")


site = DynamoAdminSite()
site.register(GameServer, ServerAdmin)
site.register(GamePlayer, type("PlayerAdmin", (DynamoModelAdmin,), {"search_fields": ("username",)}))
site.register(Sample, SampleAdmin)
all_sites.discard(site)  # the checks look at all of them
urlpatterns = [path("admin/", site.urls)]


def members(number: int) -> None:
    """A server with some members, each a player of its own."""
    GameServer.objects.create(server_id="1", name="Gaming")
    GamePlayer.objects.bulk_create([GamePlayer(player_id=f"{n:03}", username=f"P{n:03}") for n in range(number)])
    GameMember.objects.bulk_create([GameMember(server_id="1", player_id=f"{n:03}") for n in range(number)])


@pytest.fixture
def served(catalog: Pages) -> Pages:
    """The admin with a server of three members."""
    members(3)
    return catalog


def added(*players: str) -> dict[str, str]:
    """Return a submission of new members."""
    sent = {f"gamemember_set-{n}-player": player for n, player in enumerate(players)}
    sent |= {f"gamemember_set-{n}-role": "new" for n in range(len(players))}
    counts = {"gamemember_set-TOTAL_FORMS": str(len(players)), "gamemember_set-INITIAL_FORMS": "0"}
    return {"name": "Gaming", **counts, **sent}


def test_rows_that_are_sent_share_batches(catalog: Pages) -> None:
    """The players of 101 rows take two batches instead of 202 separate reads."""
    members(101)
    with pytest.MonkeyPatch.context() as patch:
        # A list of all players in every row takes a second to show, and sends the same requests.
        patch.setattr(MemberInline, "raw_id_fields", ("player",), raising=False)
        sent = {**form_of(catalog.get(CHANGE)), "gamemember_set-7-role": "owner"}
    answer = catalog.post(CHANGE, sent, sends=[*READ, "BatchGetItem", "BatchGetItem", "TransactWriteItems"])
    assert answer.status_code == 302
    assert GameMember.objects.get(server_id="1", player_id="007").role == "owner"


@pytest.mark.parametrize("option", ["raw_id_fields", "autocomplete_fields"])
def test_rows_that_are_shown_share_batches(catalog: Pages, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    """The names next to the keys of 101 rows take two batches."""
    members(101)
    monkeypatch.setattr(MemberInline, option, ("player",), raising=False)
    page = catalog.get(CHANGE, sends=[*READ, "BatchGetItem", "BatchGetItem"]).content.decode()
    assert page.count("P100</a>" if option == "raw_id_fields" else ">P100</option>") == 1


@pytest.mark.parametrize("option", ["raw_id_fields", "autocomplete_fields"])
def test_a_form_that_comes_back_shows_what_it_has_read(
    served: Pages, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    """The page reuses the objects of the validation."""
    monkeypatch.setattr(MemberInline, option, ("player",), raising=False)
    sent = {**form_of(served.get(CHANGE)), "name": ""}
    page = served.post(CHANGE, sent, sends=[*READ, "BatchGetItem"]).content.decode()
    assert page.count("P002</a>" if option == "raw_id_fields" else ">P002</option>") == 1


def test_one_reference_is_read_once(served: Pages) -> None:
    """By itself: Django reads it, and asks whether it is there."""
    one = Sample.objects.create(text="one")
    child = Sample.objects.create(text="child", parent=one)
    sent = {"text": "changed", "parent": one.pk}
    served.post(f"catalog/sample/{child.pk}/change/", sent, sends=["GetItem", "GetItem", "TransactWriteItems"])
    assert Sample.objects.get(pk=child.pk).text == "changed"


def test_rows_of_a_list_share_a_batch(served: Pages) -> None:
    """After the list come the references, the rows, the chosen objects, and the write and log entry of a change."""
    one, two = (Sample.objects.create(text=text) for text in ("one", "two"))
    for parent in (one, two, one):
        Sample.objects.create(text="child", parent=parent)
    sent = {**form_of(served.get("catalog/sample/")), "_save": "Save"}
    changed = next(name for name in sent if name.endswith("-parent") and sent[name] == one.pk)
    sent[changed] = two.pk
    sends = ["Query", "BatchGetItem", "BatchGetItem", "BatchGetItem", "UpdateItem", "PutItem"]
    assert served.post("catalog/sample/", sent, sends=sends).status_code == 302
    assert sum(sample.parent_id == two.pk for sample in Sample.objects.all()) == 2


def test_keys_that_are_no_texts_share_a_batch(registered: Registering) -> None:
    """The list and its columns are read first, and then the objects next to each key."""
    with forgotten():
        unit = declare("Unit", ("UNIT", "UNIT#{unit_id}"), unit_id=models.UUIDAttribute())
        part = declare(
            "Part",
            ("PART", "PART#{part_id}"),
            part_id=models.IdAttribute(),
            unit=models.ReferenceAttribute(unit, on_delete=models.DO_NOTHING),
        )
        for number in range(3):
            part.objects.create(part_id=str(number), unit=unit.objects.create(unit_id=UUID(int=number)))
        columns = {"list_display": ("part_id", "unit"), "list_editable": ("unit",), "raw_id_fields": ("unit",)}
        pages = registered(part, **columns)
        page = pages.get("catalog/part/", sends=["Query", "BatchGetItem", "BatchGetItem"]).content.decode()
    assert page.count(">Unit object (00000000-0000-0000-0000-000000000002)<") == 1


def test_what_is_not_there_is_an_error_at_its_row(served: Pages) -> None:
    """The other objects are read in the batch, and the missing one separately."""
    for player in ("new", "newer"):
        GamePlayer.objects.create(player_id=player, username=player)
    page = served.post(CHANGE, added("new", "nobody", "newer")).content.decode()
    assert page.count("That choice is not one of the available choices.") == 1
    assert GameMember.objects.filter(server_id="1").count() == 3


def test_what_is_no_key_leaves_the_others_alone(served: Pages) -> None:
    """A null character causes an error only in its own field."""
    GamePlayer.objects.create(player_id="new", username="new")
    page = served.post(CHANGE, added("new", "a\x00b")).content.decode()
    assert page.count("Null characters are not allowed.") == 1
    assert page.count('class="errorlist"') == 1


def test_new_rows_share_a_batch(served: Pages) -> None:
    """In addition, each row checks its key and reads its copies."""
    for player in ("a", "b"):
        GamePlayer.objects.create(player_id=player, username=player)
    asked = ["GetItem", "BatchGetItem", "GetItem", "GetItem", "GetItem", "GetItem", "TransactWriteItems"]
    assert served.post(CHANGE, added("a", "b"), sends=asked).status_code == 302
    assert GameMember.objects.get(server_id="1", player_id="b").username == "b"


def test_two_rows_of_one_object_need_no_batch(served: Pages) -> None:
    """The first row reads the object."""
    sent = {**form_of(served.get(CHANGE)), "gamemember_set-1-player": "000", "gamemember_set-2-player": "000"}
    with capture_requests() as requests:
        served.post(CHANGE, sent)
    reads = [request for request in requests if "PLAYER#000" in str(request.params.get("Key"))]
    assert [request.params["Key"]["pk"] for request in reads].count({"S": "PLAYER#000"}) == 1


def test_a_row_with_a_queryset_of_its_own_reads_no_other_rows_object(
    served: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The custom queryset does not contain the objects of other rows."""

    class OwnForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            chosen: Any = self.fields["player"]
            chosen.queryset = GamePlayer.objects.filter(username__in=["new", f"P{self.instance.player_id}"])

    sent = form_of(served.get(CHANGE))
    monkeypatch.setattr(MemberInline, "form", OwnForm)
    with capture_requests() as requests:
        assert served.post(CHANGE, {**sent, "gamemember_set-1-role": "owner"}).status_code == 302
    reads = [request for request in requests if request.operation in ("GetItem", "BatchGetItem")]
    assert [count for read in reads if (count := str(read.params).count("PLAYER#00"))] == [1, 1, 1]


def test_a_field_of_a_projects_own_reads_as_it_says(served: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """The custom field's ``to_python()`` is called for each row."""
    called: list[Any] = []

    class OwnField(forms.ModelChoiceField):  # type: ignore[type-arg]  # not generic at run time
        def to_python(self, value: Any) -> Any:
            called.append(value)
            return super().to_python(value)

    def own(self: Any, db_field: Any, request: Any, **kwargs: Any) -> Any:
        return DynamoTabularInline.formfield_for_foreignkey(
            self, db_field, request, **{**kwargs, "form_class": OwnField}
        )

    sent = form_of(served.get(CHANGE))
    monkeypatch.setattr(MemberInline, "formfield_for_foreignkey", own, raising=False)
    assert served.post(CHANGE, sent).status_code == 302
    assert [each for each in called if each] == ["000", "001", "002"]
