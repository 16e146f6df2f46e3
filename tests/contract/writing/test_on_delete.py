"""``on_delete`` on the real engine: the effect of a deletion on referring objects."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db.models import ProtectedError
from django.db.models.signals import post_delete

from dynamo_single import transactions
from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import (
    BulkError,
    DynamoSingleError,
    ParentInTrash,
    PendingWrite,
    StaleObject,
    StillReferenced,
)
from dynamo_single.orm.model.sql_references import _Rows
from dynamo_single.orm.write.on_delete import reset_steps
from dynamo_single.table import Table
from dynamo_single.table.flow import run
from dynamo_single.testing import assert_requests
from tests.catalog.studios import Artist, Exhibit, Frame, Gallery, Loan, Painting, Sketch, Tour
from tests.contract.clubs import items
from tests.contract.racing import before_write
from tests.contract.robustness.crashing import Crash, crash_behind
from tests.contract.tables import assert_consistent

pytestmark = pytest.mark.usefixtures("table")


MANAGERS = ("objects", "all_objects", "deleted_objects")


@pytest.fixture
def ann(table: Table) -> Artist:
    """Return an artist without references, and the default artist."""
    Artist.objects.create(artist_id="nobody")
    return Artist.objects.create(artist_id="ann", name="Ann")


@pytest.fixture
def gallery(table: Table) -> Gallery:
    """A gallery to which nothing refers."""
    return Gallery.objects.create(gallery_id="g")


def keys(table: Table) -> set[str]:
    """Return all stored partition and sort keys."""
    return {f"{pk} {sk}" for pk, sk in items(table)}


# CASCADE


def test_what_cascades_goes_along_through_several_references(ann: Artist, table: Table) -> None:
    sketch = Sketch.objects.create(artist=ann, sketch_id="s")
    Frame.objects.create(frame_id="f", sketch=sketch)
    counts = {"catalog.Artist": 1, "catalog.Sketch": 1, "catalog.Frame": 1}
    assert ann.delete() == (3, counts)
    assert keys(table) == {"ARTIST#nobody #METADATA"}


def test_signals_tell_of_what_goes_along(ann: Artist) -> None:
    Sketch.objects.create(artist=ann, sketch_id="s")
    told: list[Any] = []

    def receive(sender: Any, instance: Any, origin: Any, **kwargs: Any) -> None:
        told.append((instance.pk, origin.pk))

    post_delete.connect(receive, sender=Sketch)
    try:
        ann.delete()
    finally:
        post_delete.disconnect(receive, sender=Sketch)
    assert told == [("ann~~s", "ann")]


def test_a_large_cascade_is_sent_in_several_transactions(ann: Artist, table: Table) -> None:
    Sketch.objects.bulk_create([Sketch(artist=ann, sketch_id=f"{number:03}") for number in range(150)])
    assert ann.delete()[0] == 151
    assert keys(table) == {"ARTIST#nobody #METADATA"}


def test_what_cascades_and_comes_meanwhile_is_deleted_too(ann: Artist, table: Table) -> None:
    with before_write(1, lambda: Sketch.objects.create(artist=Artist(artist_id="ann"), sketch_id="late")):
        assert ann.delete() == (2, {"catalog.Artist": 1, "catalog.Sketch": 1})
    assert keys(table) == {"ARTIST#nobody #METADATA"}


# PROTECT


def test_what_protects_refuses_the_deletion_and_nothing_is_written(ann: Artist, table: Table) -> None:
    sketch = Sketch.objects.create(artist=Artist.objects.create(artist_id="bob"), sketch_id="s")
    frame = Frame.objects.create(frame_id="f", sketch=sketch, maker=ann)
    before = items(table)
    with pytest.raises(ProtectedError) as caught:
        ann.delete()
    assert caught.value.protected_objects == {frame}
    assert isinstance(caught.value, DynamoSingleError)
    assert str(caught.value) == (
        "Cannot delete catalog.Artist with pk 'ann': catalog.Frame objects refer to it by maker, for example "
        "pk 'f'. Nothing was written. Delete these objects or change their references first."
    )
    assert items(table) == before


def test_what_protects_something_that_goes_along_refuses_too(ann: Artist, table: Table) -> None:
    Frame.objects.create(frame_id="f", sketch=Sketch.objects.create(artist=ann, sketch_id="s"), maker=ann)
    before = items(table)
    with pytest.raises(StillReferenced, match="for example pk 'f'"):
        ann.delete()
    assert items(table) == before


def test_no_signal_is_sent_of_a_deletion_that_is_refused(ann: Artist) -> None:
    Frame.objects.create(frame_id="f", sketch_id="x~~y", maker=ann)
    told: list[Any] = []

    def receive(sender: Any, instance: Any, **kwargs: Any) -> None:
        told.append(instance)

    post_delete.connect(receive, sender=Artist)
    try:
        with pytest.raises(ProtectedError):
            ann.delete()
    finally:
        post_delete.disconnect(receive, sender=Artist)
    assert told == []


def test_a_queryset_ends_at_what_is_protected(ann: Artist) -> None:
    Frame.objects.create(frame_id="f", sketch_id="x~~y", maker=ann)
    with pytest.raises(
        StillReferenced, match=r"Cannot delete catalog.Artist with pk 'ann': catalog.Frame objects refer to it by maker"
    ):
        Artist.objects.filter(pk__in=["ann", "nobody"]).delete()
    assert {artist.pk for artist in Artist.objects.filter(pk__in=["ann", "nobody"])} == {"ann", "nobody"}


def test_a_queryset_names_what_it_deleted_before_what_is_protected(ann: Artist) -> None:
    Frame.objects.create(frame_id="f", sketch_id="x~~y", maker=ann)
    with pytest.raises(
        BulkError, match=r"Cannot delete catalog.Artist with pk 'ann': catalog.Frame objects refer to it"
    ) as raised:
        Artist.objects.filter(pk__in=["nobody", "ann"]).delete()
    assert raised.value.written == ("nobody",)
    assert [type(error) for error in raised.value.failed.values()] == [StillReferenced]
    assert [artist.pk for artist in Artist.objects.filter(pk__in=["ann", "nobody"])] == ["ann"]


def test_what_is_deleted_in_the_same_block_cannot_be_looked_for(ann: Artist) -> None:
    frame = Frame.objects.create(frame_id="f", sketch_id="x~~y", maker=ann)
    with pytest.raises(PendingWrite, match=r"catalog.Frame with pk 'f' is written in this"), transactions.atomic():
        frame.delete()
        ann.delete()
    assert Artist.objects.filter(pk="ann").exists()


def test_what_comes_to_protect_meanwhile_is_reported(ann: Artist) -> None:
    def refer() -> None:
        Frame.objects.create(frame_id="f", sketch_id="x~~y", maker_id="ann")

    with (
        before_write(1, refer),
        pytest.raises(StaleObject, match=r"during the deletion catalog.Frame with pk 'f' began to refer"),
    ):
        ann.delete()
    kinds = {finding.kind for finding in verify()}
    assert kinds == {"child without parent", "reference to a missing object"}


# SET_NULL and SET_DEFAULT


def test_references_are_set_to_nothing_and_to_their_default_in_the_same_transaction(ann: Artist, table: Table) -> None:
    Painting.objects.create(painting_id="p", artist=ann, editor=ann)
    Painting.objects.create(painting_id="q", artist=ann, editor_id="nobody")
    # SET_NULL and SET_DEFAULT, live and in the trash; Sketches, and protecting objects; and all of them again
    # afterwards.
    assert ann.delete() == (1, {"catalog.Artist": 1})
    (p, q) = (Painting.objects.get(pk=pk) for pk in "pq")
    assert (p.artist_id, p.artist_name, p.editor_id) == (None, None, "nobody")
    assert (q.artist_id, q.artist_name, q.editor_id) == (None, None, "nobody")
    assert_consistent()


def test_what_is_in_the_trash_is_set_too(ann: Artist) -> None:
    Painting.objects.create(painting_id="p", artist=ann, editor_id="nobody").delete()
    ann.delete()
    assert Painting.deleted_objects.get(pk="p").artist_id is None
    Painting.deleted_objects.get(pk="p").restore()
    assert_consistent()


def test_a_default_that_is_deleted_itself_is_refused(ann: Artist, table: Table) -> None:
    Painting.objects.create(painting_id="p", artist=None, editor_id="nobody")
    before = items(table)
    with pytest.raises(ProtectedError, match=r"it is the default of catalog.Painting.editor"):
        Artist.objects.get(pk="nobody").delete()
    assert items(table) == before


def test_a_default_among_more_than_a_hundred_that_are_deleted_is_refused(ann: Artist) -> None:
    others = [Artist(artist_id=f"{number:03}") for number in range(100)]
    Artist.objects.bulk_create(others)
    Painting.objects.create(painting_id="p", artist=None, editor=others[0])
    deleted = [*others, Artist.objects.get(pk="nobody")]
    with pytest.raises(StillReferenced, match=r"'nobody': it is the default"):
        run(reset_steps(deleted, again=False))


def paintings(number: int, **given: Any) -> None:
    """So many, written together."""
    made = [Painting(painting_id=f"{each:03}", **given) for each in range(number)]
    Painting.objects.bulk_create(made, in_transactions=True)


def test_many_references_are_set_in_several_transactions_before_the_object_goes(ann: Artist) -> None:
    paintings(120, artist=ann, editor_id="nobody")
    ann.delete()
    assert {painting.artist_id for painting in Painting.objects.filter(painting_id__in=["000", "119"])} == {None}
    assert_consistent()


def test_a_reference_that_another_writer_changed_meanwhile_stays(ann: Artist) -> None:
    Painting.objects.create(painting_id="p", artist=ann, editor_id="nobody")

    def give() -> None:
        Painting.objects.filter(pk="p").update(artist=Artist.objects.create(artist_id="bob", name="Bob"))

    with before_write(1, give):
        ann.delete()
    painting = Painting.objects.get(pk="p")
    assert (painting.artist_id, painting.artist_name) == ("bob", "Bob")


def test_one_that_comes_meanwhile_is_set_too(ann: Artist) -> None:
    with before_write(1, lambda: Painting.objects.create(painting_id="p", artist_id="ann", editor_id="nobody")):
        ann.delete()
    assert Painting.objects.get(pk="p").artist_id is None


# the trash


def test_the_trash_takes_what_cascades_and_gives_back_what_it_took(gallery: Gallery, table: Table) -> None:
    Exhibit.objects.create(exhibit_id="a", gallery=gallery)
    Exhibit.objects.create(exhibit_id="b", gallery=gallery).delete()
    before = items(table)
    assert gallery.delete() == (2, {"catalog.Gallery": 1, "catalog.Exhibit": 1})
    assert Exhibit.deleted_objects.get(pk="a").deleted_with == "Gallery#g"
    with pytest.raises(ParentInTrash):
        Exhibit.deleted_objects.get(pk="a").restore()
    assert gallery.restore() == (2, {"catalog.Gallery": 1, "catalog.Exhibit": 1})
    assert items(table) == before


def test_related_managers_show_what_the_named_one_does(gallery: Gallery) -> None:
    """The related manager is created from the class of the named one, with the same visibility."""
    Exhibit.objects.create(exhibit_id="a", gallery=gallery)
    Exhibit.objects.create(exhibit_id="b", gallery=gallery).delete()
    shown = {name: [each.pk for each in gallery.exhibit_set(manager=name).all()] for name in MANAGERS}
    assert shown == {"objects": ["a"], "all_objects": ["a", "b"], "deleted_objects": ["b"]}


def test_the_trash_is_refused_by_what_protects_and_is_live(gallery: Gallery, table: Table) -> None:
    loan = Loan.objects.create(loan_id="l", gallery=gallery)
    before = items(table)
    with pytest.raises(ProtectedError):
        gallery.delete()
    assert items(table) == before
    loan.delete()
    gallery.delete()
    with pytest.raises(ProtectedError, match=r"catalog.Loan"):
        gallery.hard_delete()


def test_nothing_is_set_to_null_before_the_deletion_for_good(gallery: Gallery) -> None:
    Tour.objects.create(tour_id="v", gallery=gallery)
    gallery.delete()
    assert Tour.objects.get(pk="v").gallery_id == "g"
    gallery.hard_delete()
    assert Tour.objects.get(pk="v").gallery_id is None


def test_what_comes_while_the_object_goes_to_the_trash_goes_along(gallery: Gallery) -> None:
    with before_write(1, lambda: Exhibit.objects.create(exhibit_id="late", gallery_id="g")):
        assert gallery.delete()[0] == 2
    assert gallery.restore()[0] == 2


# all of them


def test_the_asynchronous_twin_does_the_same(ann: Artist) -> None:
    Sketch.objects.create(artist=ann, sketch_id="s")
    Painting.objects.create(painting_id="p", artist=ann, editor_id="nobody")
    assert async_to_sync(ann.adelete)() == (2, {"catalog.Artist": 1, "catalog.Sketch": 1})
    assert Painting.objects.get(pk="p").artist_id is None


def test_what_is_looked_for_is_one_query_a_reference_and_visibility(gallery: Gallery) -> None:
    searches = ["Query"] * 2  # exhibits and loans that are live
    with assert_requests([*searches, "UpdateItem", *searches]):
        gallery.delete()


def test_a_model_that_nothing_refers_to_pays_nothing(table: Table) -> None:
    tour = Tour.objects.create(tour_id="v")
    with assert_requests(["DeleteItem"]):
        tour.delete()


def test_an_object_to_which_others_refer_does_not_move(ann: Artist) -> None:
    Painting.objects.create(painting_id="p", artist=ann, editor_id="nobody")
    with pytest.raises(DynamoSingleError, match=r"cannot move: catalog.Painting objects refer to it by artist"):
        ann.move(artist_id="ann2")


def test_what_looks_after_the_rows_of_sql_models_leaves_these_alone(ann: Artist) -> None:
    """Django's collector would delete what refers by an ``on_delete`` behind the app's back."""
    Sketch.objects.create(artist=ann, sketch_id="s")
    Frame.objects.create(frame_id="f", sketch_id="x~~y", maker=ann)
    with assert_requests([]):
        assert rows_of(ann) == {Artist: {ann}}


def rows_of(obj: Artist) -> Any:
    """Return the actions of Django's collector for an object."""
    collector: Any = _Rows(using="default", origin=obj)
    collector.collect([obj])
    return dict(collector.data)


def test_explain_says_that_a_deletion_asks_the_same_index() -> None:
    by_index = Frame.objects.filter(maker="ann").explain()
    assert (
        "the deletion of a catalog.Artist sends the same query twice for maker's on_delete=PROTECT: an index may not"
        in by_index
    )
    assert "deletion" not in Sketch.objects.filter(artist="ann").explain()


@pytest.mark.parametrize("kill", [2, 6, 7])
def test_a_deletion_that_is_killed_is_completed_when_it_is_called_again(ann: Artist, table: Table, kill: int) -> None:
    """References are set before the object is deleted, so a retry can continue."""
    paintings(120, artist=ann, editor=ann)
    with crash_behind(kill) as asked, pytest.raises(Crash):
        ann.delete()
    assert len(asked) == kill + 1
    Artist.objects.get(pk="ann").delete()
    left = [(painting.artist_id, painting.editor_id) for painting in Painting.objects.filter(editor="nobody")]
    assert left == [(None, "nobody")] * 120
    assert_consistent()
