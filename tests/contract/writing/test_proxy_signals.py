"""Signals of a proxy's objects have the proxy as sender, like Django's on SQLite, for every way to write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import models as django_models
from django.db.models.signals import post_delete, post_save, pre_delete, pre_save

from dynamo_single import models
from dynamo_single.signals import post_restore, post_soft_delete
from tests.contract.sqlite import ALIAS, sqlite
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")

SIGNALS = {"pre_save": pre_save, "post_save": post_save, "pre_delete": pre_delete, "post_delete": post_delete}


def proxy_of(model: Any, name: str, base: Any) -> Any:
    meta = type("Meta", (), {"proxy": True, "app_label": "catalog"})
    return type(base)(name, (model,), {"__module__": __name__, "Meta": meta})


@pytest.fixture(scope="module")
def both(django_db_blocker: Any) -> Iterator[list[tuple[Any, Any, Callable[[Any], Any]]]]:
    """Return a model and its proxy here and on SQLite, with functions that return a manager's queryset."""
    with forgotten(), django_db_blocker.unblock(), sqlite() as connection:

        class Song(django_models.Model):
            song_id = django_models.CharField(max_length=10, primary_key=True)
            title = django_models.CharField(max_length=10)

            class Meta:
                app_label = "catalog"

            def __str__(self) -> str:
                return self.song_id

        class Verse(django_models.Model):
            verse_id = django_models.CharField(max_length=10, primary_key=True)
            song = django_models.ForeignKey(Song, django_models.CASCADE, related_name="verses")

            class Meta:
                app_label = "catalog"

            def __str__(self) -> str:
                return self.verse_id

        with connection.schema_editor() as editor:
            editor.create_model(Song)
            editor.create_model(Verse)
        theirs = (Song, proxy_of(Song, "Hit", django_models.Model), Verse)
        ours = declare(
            "Tune",
            ("TUNE#{song_id}", "#METADATA"),
            {"listed": models.IndexKey("gs1", "TUNE", "{song_id}")},
            song_id=models.UnicodeAttribute(),
            title=models.UnicodeAttribute(),
        )
        line = declare(
            "TuneLine",
            ("TUNE#{song_id}", "LINE#{verse_id}"),
            {"listed": models.IndexKey("gs1", "LINE", "{song_id}#{verse_id}")},
            verse_id=models.UnicodeAttribute(),
            song=models.ReferenceAttribute(ours, on_delete=models.CASCADE, related_name="verses"),
        )
        hit = proxy_of(ours, "TuneHit", models.Model)
        names = {Song: "model", theirs[1]: "proxy", Verse: "child", ours: "model", hit: "proxy", line: "child"}
        yield [(theirs, names, lambda model: model.objects.using(ALIAS)), ((ours, hit, line), names, plain)]


def plain(model: Any) -> Any:
    return model.objects.all()


def _save_again(rows: Any, asked: Any) -> None:
    song = asked(rows).get(pk="s")
    song.title = "new"
    song.save()


def _save_named(rows: Any, asked: Any) -> None:
    song = asked(rows).get(pk="s")
    song.title = "new"
    song.save(update_fields=["title"])


#: Each way to write, of a model's or a proxy's objects.
WAYS: dict[str, Callable[[Any, Any], object]] = {
    "create": lambda rows, asked: asked(rows).create(song_id="n", title="n"),
    "save": _save_again,
    "save some": _save_named,
    "save_base": lambda rows, asked: asked(rows).get(pk="s").save_base(raw=True, using=asked(rows).db),
    "get_or_create": lambda rows, asked: asked(rows).get_or_create(song_id="n", defaults={"title": "n"}),
    "update_or_create": lambda rows, asked: asked(rows).update_or_create(song_id="s", defaults={"title": "n"}),
    "bulk_create": lambda rows, asked: asked(rows).bulk_create([rows(song_id="n", title="n")]),
    "bulk_update": lambda rows, asked: asked(rows).bulk_update([rows(song_id="s", title="n")], ["title"]),
    "update": lambda rows, asked: asked(rows).filter(pk="s").update(title="n"),
    "delete": lambda rows, asked: asked(rows).get(pk="s").delete(),
    "delete of a key": lambda rows, asked: asked(rows).filter(pk="s").delete(),
    "delete of a list": lambda rows, asked: asked(rows).filter(song_id__gte="a").delete(),
}


@pytest.mark.parametrize("listens", ["model", "proxy", "child", None])
@pytest.mark.parametrize("writes", [0, 1])
@pytest.mark.parametrize("way", WAYS)
def test_signals_are_djangos(both: Any, way: str, writes: int, listens: str | None) -> None:
    """This includes receivers of the model, the proxy, cascading models and all models."""
    told: list[list[tuple[str, str, str]]] = []
    results: list[object] = []
    for (model, proxy, child), names, asked in both:
        asked(child).delete()
        asked(model).delete()
        song = asked(model).create(song_id="s", title="s")
        asked(child).create(verse_id="v", song=song)
        heard: list[tuple[str, str, str]] = []
        senders = {"model": model, "proxy": proxy, "child": child, None: None}

        def receiver(sender: Any, instance: Any, signal: Any, heard: Any = heard, names: Any = names, **_: Any) -> None:
            name = next(name for name, each in SIGNALS.items() if each is signal)
            if sender in names:
                heard.append((name, names[sender], names[type(instance)]))

        for signal in SIGNALS.values():
            signal.connect(receiver, sender=senders[listens])
        try:
            result = WAYS[way]((model, proxy)[writes], asked)
        finally:
            for signal in SIGNALS.values():
                signal.disconnect(receiver, sender=senders[listens])
        told.append(sorted(heard))
        results.append(result[0] if way.startswith("delete") else None)  # type: ignore[index]  # the number
    assert told[0] == told[1]
    assert results[0] == results[1]


def test_trash_signals_name_the_proxy() -> None:
    """Into it and out of it, of an object and of a queryset."""
    heard: list[tuple[Any, Any]] = []

    def receiver(sender: Any, instance: Any, signal: Any, **_: Any) -> None:
        heard.append((signal, sender))

    with forgotten():
        model = declare(
            "Draw",
            ("DRAW#{draw_id}", "#METADATA"),
            {"listed": models.IndexKey("gs1", "DRAW", "{draw_id}")},
            bases=(models.SoftDeleteModel,),
            draw_id=models.UnicodeAttribute(),
        )
        proxy = proxy_of(model, "DrawProxy", models.Model)
        for signal in (post_soft_delete, post_restore):
            signal.connect(receiver, sender=proxy)
        proxy.objects.create(draw_id="a").delete()
        proxy.deleted_objects.get(pk="a").restore()
        proxy.objects.filter(draw_id__gte="a").delete()
        proxy.deleted_objects.all().restore()
        model.objects.get(pk="a").delete()
    assert heard == [(post_soft_delete, proxy), (post_restore, proxy)] * 2
