"""Forms show another user's changes, for fields of every type."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from django import forms
from django.http import QueryDict

from dynamo_single import models
from dynamo_single.forms import MergingModelForm
from tests.catalog.servers import GameServer, GameTag
from tests.unit.declaring import declare, forgotten

with forgotten():
    Sheet: Any = declare(
        "MergedSheet",
        ("MERGED#{sheet_id}", "#"),
        sheet_id=models.IdAttribute(),
        title=models.UnicodeAttribute(null=True),
        text=models.UnicodeAttribute(null=True, multiline=True),
        flag=models.BooleanAttribute(null=True),
        day=models.DateAttribute(null=True),
    )


class SheetForm(MergingModelForm):
    """A form with multi-input widgets, and with an unchecked one."""

    class Meta:
        model = Sheet
        fields = ("title", "text", "flag", "day")
        widgets = {  # noqa: RUF012 - Django's
            "flag": forms.NullBooleanSelect,
            "day": forms.SelectDateWidget(years=range(2020, 2030)),
            "text": forms.Textarea,
        }


def sent(form: Any) -> QueryDict:
    """Return a browser's submission of an untouched form."""
    data = QueryDict(mutable=True)
    for name in form._before:
        form._put(data, name, form.initial.get(name))
    data["as_shown"] = form["as_shown"].value()
    return data


@pytest.mark.parametrize(
    ("name", "shown", "theirs"),
    [
        ("flag", None, False),
        ("flag", False, None),
        ("flag", True, None),
        ("text", "if x:\n  y", "if x:\n      y"),
        ("title", "a", "b"),
        ("day", date(2026, 1, 1), date(2026, 2, 3)),
        ("day", None, date(2026, 2, 3)),
    ],
)
def test_a_form_that_nobody_touched_overwrites_nothing(table: object, name: str, shown: Any, theirs: Any) -> None:
    """The data of the widget does not matter."""
    Sheet.objects.create(sheet_id="s", **{name: shown})
    data = sent(SheetForm(instance=Sheet.objects.get(pk="s")))
    Sheet.objects.filter(pk="s").update(**{name: theirs})
    form = SheetForm(data, instance=Sheet.objects.get(pk="s"))
    assert form.is_valid(), form.errors
    form.save()
    assert getattr(Sheet.objects.get(pk="s"), name) == theirs


def test_line_ends_of_browsers_are_no_change(table: object) -> None:
    """They send two characters for one."""
    Sheet.objects.create(sheet_id="s", text="a\nb", title="x")
    data = sent(SheetForm(instance=Sheet.objects.get(pk="s")))
    data["text"] = "a\r\nb"
    Sheet.objects.filter(pk="s").update(text="theirs")
    form = SheetForm(data, instance=Sheet.objects.get(pk="s"))
    assert form.is_valid(), form.errors
    form.save()
    assert Sheet.objects.get(pk="s").text == "theirs"


class ServerForm(MergingModelForm):
    """A form with a relation to many."""

    class Meta:
        model = GameServer
        fields = ("name", "tags")


def server_with_tags(*names: str) -> tuple[Any, list[Any]]:
    """A server, and the tags that there are; it has the first of them."""
    tags = [GameTag.objects.create(word=name) for name in names]
    server = GameServer.objects.create(name="one")
    server.tags.set(tags[:1])
    return server, tags


def test_a_relation_to_many_that_nobody_touched_is_left_as_it_is(table: object) -> None:
    """Another user's choice is kept."""
    server, tags = server_with_tags("a", "b")
    data = sent(ServerForm(instance=GameServer.objects.get(pk=server.pk)))
    data["name"] = "two"
    server.tags.set(tags)
    form = ServerForm(data, instance=GameServer.objects.get(pk=server.pk))
    assert not form.is_valid()
    assert "tags" in form.errors
    again = ServerForm(form.data, instance=GameServer.objects.get(pk=server.pk))
    assert again.is_valid(), again.errors
    again.save()
    assert {tag.pk for tag in GameServer.objects.get(pk=server.pk).tags.all()} == {tag.pk for tag in tags}
