"""The state of a queryset: one value, which later changes of the queryset do not reach."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Count

from dynamo_single.exceptions import NotSupported, UnknownField
from dynamo_single.orm.conditions.terms import Compare, Nothing
from dynamo_single.orm.query.state import InKeyOrder, related_reads_of, state_of
from dynamo_single.orm.results.state import Asked, RelatedReads, Window
from project.directory.models import Company, Person


def test_a_state_cannot_be_changed() -> None:
    """The state and the query are frozen."""
    state = state_of(Company.objects.all())
    with pytest.raises(AttributeError):
        state.window = Window(1)  # type: ignore[misc]  # that is the test
    with pytest.raises(AttributeError):
        state.asked.consistent = True  # type: ignore[misc]  # that is the test


def test_a_state_is_as_of_the_moment_it_was_made() -> None:
    """Django changes its query in place, which does not affect an earlier state."""
    queryset: Any = Company.objects.filter(name="Acme").order_by("name")
    state = state_of(queryset)
    queryset.query.clear_ordering(force=True)
    queryset.query.set_limits(high=1)
    queryset.query.clear_where()
    assert (state.where, state.ordering, state.window) == (Compare("name", "exact", "Acme"), ("name",), Window())
    assert (state_of(queryset).ordering, state_of(queryset).window) == ((), Window(0, 1))


def test_what_is_asked_is_one_reference() -> None:
    """A derived queryset shares the value, and a method that changes the query creates a new one."""
    queryset: Any = Company.objects.consistent()
    assert queryset.filter(name="Acme").order_by("name")[:3]._asked is queryset._asked
    assert queryset.using_index("primary")._asked == Asked(consistent=True, using_index="primary")
    assert queryset._asked == Asked(consistent=True)


@pytest.mark.parametrize(
    "ask",
    [
        lambda found: found.with_visibility("all"),
        lambda found: found.using_index("primary"),
        lambda found: found.without_index("by_name"),
        lambda found: found.consistent(),
        lambda found: found.allow_scan(),
        lambda found: found.allow_in_memory(5),
        lambda found: found.allow_reads(5),
        lambda found: found.values("name"),
        lambda found: found.distinct(),
        lambda found: found.using(InKeyOrder("default")),
    ],
)
def test_querysets_that_ask_differently_are_not_combined(ask: Callable[[Any], Any]) -> None:
    """Options of one side do not apply to the combined result."""
    with pytest.raises(NotSupported, match="Cannot combine querysets"):
        _ = Company.objects.all() | ask(Company.objects.all())


def test_progress_is_no_part_of_what_is_asked() -> None:
    """The objects are the same with any callback, and derived querysets keep it."""

    def told(done: int, total: int | None) -> None: ...

    queryset: Any = Company.objects.on_progress(told)
    assert queryset._asked == Asked()
    assert (queryset.filter(name="a") | Company.objects.filter(name="b"))._progress is told


def test_an_order_by_pk_is_given_up_by_an_alias_alone() -> None:
    """``dumpdata`` hands the alias to ``using()``; every other order stays."""
    queryset = Company.objects.using(InKeyOrder("default"))
    assert state_of(queryset.order_by("company_id")).ordering == ()
    assert state_of(queryset.order_by("-company_id")).ordering == ("-company_id",)
    assert state_of(Company.objects.using("default").order_by("company_id")).ordering == ("company_id",)


def test_a_state_has_the_order_as_it_was_asked_for() -> None:
    """An unsupported order raises an error only if the order matters, unlike in a count."""
    state = state_of(Company.objects.order_by("name", "-pk"))
    assert state.ordering == ("name", "-pk")
    assert state.query(ordered=False).ordering == ()
    with pytest.raises(UnknownField):
        state_of(Company.objects.annotate(n=Count("people")).order_by("n")).source().query()


def test_the_source_of_what_is_computed() -> None:
    """Annotated objects keep their order and slice; rows use all matches in any order."""
    objects = state_of(Company.objects.only("name").annotate(n=Count("people")).order_by("name")[1:3]).source()
    assert (objects.asked, objects.ordering, objects.window) == (Asked(), ("name",), Window(1, 3))
    assert objects.loading == (frozenset(), True)
    rows = state_of(Company.objects.values("name").annotate(n=Count("pk")).order_by("name").reverse()[1:3]).source()
    assert (rows.asked, rows.ordering, rows.window, rows.reversed) == (Asked(), (), Window(), False)


def test_what_is_computed_is_not_planned_as_it_is() -> None:
    """A plan would read the objects, which are not the results."""
    with pytest.raises(NotSupported, match="Cannot do this on results distinct name in memory"):
        state_of(Company.objects.values("name").distinct()).query()


@pytest.mark.filterwarnings("ignore:Calling select_related")  # without names: deprecated since Django 6.1
def test_what_is_read_along() -> None:
    """Named references and theirs, or all references of every object; rows do not read any."""
    assert related_reads_of(Person.objects.all()) == RelatedReads()
    assert related_reads_of(
        Person.objects.select_related("company").prefetch_related("company__people")
    ) == RelatedReads(select_related=("company",), prefetch_related=("company__people",))
    assert related_reads_of(Person.objects.select_related()).references == ("company",)
    assert not related_reads_of(Person.objects.select_related("company").values("name"))


def test_nothing_is_refused_where_nothing_is_asked() -> None:
    """``none()`` has no results, whatever its conditions are, as in Django."""
    queryset = Company.objects.filter(name__endswith="x")
    with pytest.raises(NotSupported):
        state_of(queryset)
    state = state_of(queryset.none())
    assert (state.is_empty, state.where) == (True, Nothing())


def test_what_is_asked_survives_pickling() -> None:
    """A queryset from a cache sends the same query."""
    queryset: Any = Company.objects.consistent().allow_in_memory(7).values("name").distinct().none()
    assert pickle.loads(pickle.dumps(queryset))._asked == queryset._asked
