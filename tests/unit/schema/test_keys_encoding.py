"""Values written into keys: injective, escaped, and sorting as the values do, also with more key after them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dynamo_single.exceptions import ConfigurationError, InvalidValue
from dynamo_single.orm.schema.keys.template import Template, canonical, codec_for

texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.text(st.sampled_from('\x00\t\x1f !"#$%&_-a~:;O/\U0010ffff\U0010fffe'), min_size=1),
)
numbers = st.one_of(
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.integers(-1000, 1000),
    st.decimals(-1000, 1000, places=3),
    st.builds(
        lambda digits, exponent: Decimal(digits).scaleb(exponent), st.integers(-(10**27), 10**27), st.integers(-90, 80)
    ),
)
moments = st.datetimes(timezones=st.just(UTC)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
STRATEGIES = {
    "text": texts,
    "number": numbers,
    "boolean": st.booleans(),
    "date": st.dates(),
    "time": st.times(),
    "timestamp": moments,
    "duration": st.timedeltas(),
    "uuid": st.uuids(),
}
values = st.sampled_from(sorted(STRATEGIES)).flatmap(
    lambda kind: st.tuples(st.just(kind), STRATEGIES[kind], STRATEGIES[kind])
)
LOW_SEPARATORS = ["#", " ", "!", '"', "\t", "#X#"]
HIGH_SEPARATORS = ["-", "_", ":", "/", "|", "~", ".", "·|"]


def bound(source: str, **kinds: str) -> Template:
    """Parse a template and bind each variable to a plain codec of its kind."""
    return Template.parse(source).bind({name: codec_for(kind) for name, kind in kinds.items()})


@given(values, texts, texts, st.sampled_from(["", *LOW_SEPARATORS]))
@example(("text", "a", "a#"), "x", "x", "#")
@example(("text", "a", "a\x00"), "x", "x", "#")
@example(("text", " ", "!"), "x", "x", "#")
@example(("text", "O", "\x1f"), "x", "x", "#")
@example(("number", -1.2, -1.23), "x", "x", "#")
@example(("number", 1, Decimal("1.01")), "x", "x", "#")
def test_keys_sort_as_the_values(pair: tuple[str, Any, Any], behind: str, other: str, separator: str) -> None:
    """Keys sort by the value first, whatever stands after it."""
    kind, first, second = pair
    template = bound("P#{a}" + separator + ("{b}" if separator else ""), a=kind, b="text")
    one, two = template.render({"a": first, "b": behind}), template.render({"a": second, "b": other})
    assert template.parts[0].ordered
    if first != second:
        assert (first < second) == (one.encode() < two.encode())


@given(texts, texts, texts, texts, st.sampled_from(LOW_SEPARATORS + HIGH_SEPARATORS))
@example("a", "b#c", "a#b", "c", "#")
@example("x y", "z", "x", "y z", "_")
@example("a-", "b", "a", "-b", "-")
@example("\n", "b", "$:", "b", ":")
def test_rendering_is_injective(a: str, b: str, c: str, d: str, separator: str) -> None:
    """Two different tuples of values never give one key."""
    template = bound("P#{a}" + separator + "{b}", a="text", b="text")
    assert (template.render({"a": a, "b": b}) == template.render({"a": c, "b": d})) == ((a, b) == (c, d))


@given(values, st.sampled_from(HIGH_SEPARATORS))
def test_every_kind_is_injective_in_front_of_any_separator(pair: tuple[str, Any, Any], separator: str) -> None:
    """A separator that also occurs in dates or numbers is escaped there."""
    kind, first, second = pair
    template = bound("{a}" + separator + "{b}", a=kind, b="text")
    keys = {template.render({"a": value, "b": "x"}) for value in (first, second)}
    assert len(keys) == (1 if first == second else 2)
    assert all(key.count(separator) == 1 for key in keys)
    assert not template.parts[0].ordered


@given(values)
def test_a_value_cannot_forge_a_separator(pair: tuple[str, Any, Any]) -> None:
    """No written value holds a character below the escape character, so none holds a separator."""
    kind, value, _ = pair
    text = codec_for(kind).encode(value)
    assert all(character >= "$" for character in text)


@given(texts, texts)
def test_prefixes_stay_prefixes(text: str, start: str) -> None:
    """A written text starts with a written prefix exactly if the text starts with the prefix."""
    for terminator in ("", "_", "-", ":"):
        codec = codec_for("text")
        assert codec.encode(text, terminator).startswith(codec.encode(start, terminator)) == text.startswith(start)
        assert codec.encode(start + text, terminator).startswith(codec.encode(start, terminator))


@given(numbers)
def test_equal_numbers_give_one_text(number: int | Decimal) -> None:
    """1, 1.0 and Decimal("1.00") are one key."""
    codec = codec_for("number")
    forms: list[Any] = [number, Decimal(number)]
    if number == int(number) and abs(number) < 10**38:
        forms.append(int(number))
    if Decimal(repr(float(number))) == number:
        forms.append(float(number))
    assert len({codec.encode(form) for form in forms}) == 1


@pytest.mark.parametrize(
    ("kind", "spec", "value", "text"),
    [
        ("text", "", "Acme & Co", "Acme$_&$_Co"),
        ("text", "", "a#b$c", "a$sb$tc"),
        ("text", "", "\x00\x1f", "$0$O"),
        ("text", "canonical", " Émile@Example.COM ", "émile@example.com"),
        ("text", "canonical", "E\u0301", "é"),
        ("number", "", 0, "o"),
        ("number", "", 1.0, "p5001"),
        ("number", "", Decimal("1200"), "p50312"),
        ("number", "", -12.5, "n498874~"),
        ("number", "", Decimal("1E-130"), "p3701"),
        ("number", "08d", 42, "00000042"),
        ("number", "08d", Decimal("4.2E+1"), "00000042"),
        ("number", "03d", 0, "000"),
        ("boolean", "", True, "1"),
        ("date", "", date(824, 1, 2), "0824-01-02"),
        ("time", "", time(9, 30), "09:30:00"),
        ("time", "", time(9, 30, 0, 5), "09:30:00.000005"),
        ("duration", "", timedelta(hours=1, milliseconds=500), "p50336005"),
        ("duration", "", timedelta(0), "o"),
        ("duration", "", timedelta(seconds=-1), "n4998~"),
        (
            "timestamp",
            "",
            datetime(2024, 9, 20, 14, 1, 19, 123456, timezone(timedelta(hours=2))),
            "2024-09-20T12:01:19.123Z",
        ),
        ("uuid", "", UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_written_form(kind: str, spec: str, value: Any, text: str) -> None:
    """The written forms are stable, so that items of today are found tomorrow."""
    assert codec_for(kind, spec).encode(value) == text


@pytest.mark.parametrize(
    ("kind", "spec", "value", "message"),
    [
        ("text", "", 1, "not text"),
        ("text", "", "\udc80", "lone surrogate"),
        ("number", "", "1", "not a number"),
        ("number", "", True, "not a number"),
        ("number", "", float("nan"), "no NaN"),
        ("number", "03d", 1000, "ends at 999"),
        ("number", "03d", -1, "whole numbers from 0 up"),
        ("number", "03d", 0.5, "whole numbers from 0 up"),
        ("boolean", "", 1, "not a boolean"),
        ("date", "", datetime(2024, 1, 1, tzinfo=UTC), "not a date"),
        ("time", "", datetime(2024, 1, 1, tzinfo=UTC), "not a time of day"),
        ("time", "", time(9, tzinfo=UTC), "not a time of day without a zone"),
        ("duration", "", 5, "not a duration"),
        ("timestamp", "", date(2024, 1, 1), "not a datetime"),
        ("timestamp", "", datetime(2024, 1, 1), "no time zone"),
        ("timestamp", "", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))), "outside the years"),
        ("uuid", "", "x", "not a UUID"),
    ],
)
def test_value_is_refused(kind: str, spec: str, value: Any, message: str) -> None:
    """A value of the wrong type or size never becomes a key."""
    with pytest.raises(InvalidValue, match=message):
        codec_for(kind, spec).encode(value)


@pytest.mark.parametrize(
    ("kind", "spec", "message"),
    [
        ("map", "", "nested values, sets and binary values cannot be indexed"),
        ("binary", "", "nested values, sets and binary values cannot be indexed"),
        ("number", "canonical", "does not fit a number attribute; write {name:08d}"),
        ("text", "08d", "does not fit a text attribute; write {name:canonical}"),
        ("date", "canonical", "does not fit a date attribute; write {name}"),
        ("duration", "08d", "does not fit a duration attribute; write {name}"),
        ("number", "099d", "does not fit"),
    ],
)
def test_codec_is_refused(kind: str, spec: str, message: str) -> None:
    """A type that cannot be in a key, or an unsuitable format, is a configuration error."""
    with pytest.raises(ConfigurationError, match=message):
        codec_for(kind, spec)


@pytest.mark.parametrize(
    ("kind", "spec", "ordered", "prefixable", "exact"),
    [
        ("text", "", True, True, True),
        ("text", "canonical", False, False, False),
        ("number", "", True, False, True),
        ("number", "08d", True, False, True),
        ("timestamp", "", True, False, True),
        ("uuid", "", True, False, True),
    ],
)
def test_codec_says_what_it_keeps(kind: str, spec: str, ordered: bool, prefixable: bool, exact: bool) -> None:
    """The planner relies on order, prefixes and equality only if they are kept."""
    codec = codec_for(kind, spec)
    assert (codec.ordered, codec.prefixable, codec.exact) == (ordered, prefixable, exact)


@given(texts)
@example("\u0345\u0301")
@example("\u1e9e ")
@example("ǰ̱")
def test_canonical_is_stable(text: str) -> None:
    """The canonical form of a canonical form is itself, and case does not matter."""
    assert canonical(canonical(text)) == canonical(text)
    assert canonical(f"  {text}\n") == canonical(text)


@given(st.integers(0, 999), st.integers(0, 999))
def test_padded_numbers_sort(first: int, second: int) -> None:
    """Zero-padded numbers sort as numbers."""
    assume(first != second)
    codec = codec_for("number", "03d")
    assert (codec.encode(first) < codec.encode(second)) == (first < second)
