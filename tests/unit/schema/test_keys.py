"""Key templates: parsing, rendering, boundaries, and which keys they can make."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single.exceptions import ConfigurationError, EmptyKeyPart, InvalidValue
from dynamo_single.orm.schema.keys.template import IndexKey, Key, Template, can_collide, codec_for, prefix_end

texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
    st.text(st.sampled_from("Aac$#_\U0010ffff\U0010fffe"), min_size=1, max_size=5),
)
SOURCES = [
    "COMPANY",
    "#METADATA",
    "COMPANY#{a}",
    "PEOPLE#{a}",
    "PEOPLE#{a}#{b}",
    "{a}#{b}",
    "{a}",
    "root_{a}",
    "root_{a}_{b}",
    "ORDER#{a}#META#{b}",
    "X-{a}-{b}#END",
    "{a} {b}",
]


def bound(source: str) -> Template:
    """Parse a template and bind every variable as text."""
    template = Template.parse(source)
    return template.bind(dict.fromkeys(template.variables, codec_for("text")))


@pytest.mark.parametrize(
    ("source", "variables", "head"),
    [
        ("COMPANY#{company_id}", ("company_id",), "COMPANY#"),
        ("root_{company_id}", ("company_id",), "root_"),
        ("{name}#{company_id}", ("name", "company_id"), ""),
        ("SCORE#{score:08d}", ("score",), "SCORE#"),
        ("{email:canonical}", ("email",), ""),
        ("#METADATA", (), "#METADATA"),
        ("{{{a}", ("a",), "{"),
    ],
)
def test_parsing(source: str, variables: tuple[str, ...], head: str) -> None:
    """A template knows its variables in order and the literal in front of the first."""
    template = Template.parse(source)
    assert (template.variables, template.head, template.source) == (variables, head, source)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("", "it is empty"),
        ("A#{}", "{} is not the name of an attribute"),
        ("A#{0}", r"\{0\} is not the name"),
        ("A#{a.}", "{a.} is not the name of an attribute"),
        ("A#{a[0]}", r"{a\[0\]} leads into a document.*: value = models\.ExtractedAttribute\(\"a__0\"\)"),
        ("A#{a!r}", "converts with !r"),
        ("A#{a:>8}", "the format '>8' is unknown"),
        ("A#{a:00d}", "the format '00d' is unknown"),
        ("A#{a:{b}}", "the format '{b}' is unknown"),
        ("A#{a", "braces do not pair up"),
        ("A#a}", "braces do not pair up"),
        ("A${a}", "reserved for encoded values"),
        ("A\U0010ffff{a}", "reserved for encoded values"),
        ("{a}#$", "reserved for encoded values"),
        ("{a}{b}", r"nothing separates {a} from {b}"),
        ("{a}x{b}", "the end of {a} is not visible in front of 'x'"),
        ("{a}1", "the end of {a} is not visible in front of '1'"),
        ("{a}#{a}", "{a} appears twice"),
    ],
)
def test_parsing_refuses(source: str, reason: str) -> None:
    """A template with ambiguous keys raises an error that quotes it."""
    with pytest.raises(ConfigurationError, match=reason) as caught:
        Template.parse(source)
    assert repr(source) in str(caught.value)
    with pytest.raises(ConfigurationError):
        Key(source, "#METADATA")
    if source:  # an index without a sort key
        with pytest.raises(ConfigurationError):
            IndexKey("gs1", "A", source)


def test_index_key_needs_an_index() -> None:
    """The error for a missing index name contains the given value."""
    with pytest.raises(ConfigurationError, match=r"IndexKey\('PERSON#\{x\}', ...\): the first argument names"):
        IndexKey("PERSON#{x}", "A", "B")


def test_binding_names_an_unknown_attribute() -> None:
    """A template with an unknown attribute raises an error that names it."""
    with pytest.raises(ConfigurationError, match=r"'A#{nmae}' cannot be used: there is no attribute 'nmae'"):
        Template.parse("A#{nmae}").bind({"name": codec_for("text")})


def test_rendering_an_unbound_template_is_refused() -> None:
    """Without codecs there is no way to write a value."""
    with pytest.raises(ConfigurationError, match="not bound"):
        Template.parse("A#{a}").render({"a": "x"})


@pytest.mark.parametrize(("value", "reason"), [(None, "missing"), ("", "empty"), ("absent", "missing")])
def test_a_missing_part_is_an_error(value: str | None, reason: str) -> None:
    """A key is never incomplete: an index key is omitted, and a primary key raises an error."""
    values: dict[str, Any] = {"a": "x"} if value == "absent" else {"a": "x", "b": value}
    template = bound("ROLE#{a}#{b}")
    with pytest.raises(EmptyKeyPart, match=f"b is {reason}, and the key 'ROLE#{{a}}#{{b}}' needs it"):
        template.render(values)


def test_white_space_alone_is_an_empty_canonical_part() -> None:
    """A value of which the canonical form leaves nothing is an empty part."""
    template = Template.parse("{a:canonical}").bind({"a": codec_for("text", "canonical")})
    with pytest.raises(EmptyKeyPart):
        template.render({"a": "  "})


def test_a_refused_value_names_the_attribute() -> None:
    """The error of a value in a key names its attribute."""
    with pytest.raises(InvalidValue, match=r"^b: 5 is not text"):
        bound("{a}#{b}").render({"a": "x", "b": 5})


@pytest.mark.parametrize(("count", "prefix"), [(0, "ORDER#"), (1, "ORDER#1#ITEM#"), (2, "ORDER#1#ITEM#2#END")])
def test_prefix_ends_at_a_boundary(count: int, prefix: str) -> None:
    """A prefix ends at the next value."""
    assert bound("ORDER#{a}#ITEM#{b}#END").prefix({"a": "1", "b": "2"}, count) == prefix


@given(texts, texts, texts)
def test_a_prefix_finds_its_own_value_only(a: str, b: str, other: str) -> None:
    """The prefix of one value is never the prefix of another's key: ORDER#1 does not find ORDER#10."""
    for source in ("ORDER#{a}#{b}", "ORDER_{a}-{b}", "{a}:{b}"):
        template = bound(source)
        found = template.render({"a": other, "b": b}).startswith(template.prefix({"a": a}, 1))
        assert found == (a == other)


@given(st.sampled_from(["PEOPLE#", "root_", "Ac", "ORDER#1"]), texts, texts)
def test_all_keys_of_a_prefix_lie_in_front_of_its_end(prefix: str, value: str, other: str) -> None:
    """The end of a prefix divides the keys that start with it from the higher ones, whatever the values are."""
    end = prefix_end(prefix).encode()
    encode = codec_for("text").encode
    for key in (prefix, prefix + encode(value), encode(value), encode(value) + "#" + encode(other)):
        assert key.startswith(prefix) == (prefix.encode() <= key.encode() < end)


@pytest.mark.parametrize("count", [None, 0, 1])
@given(st.sampled_from(SOURCES), st.one_of(texts, st.just("")), texts, st.integers(5, 60))
def test_writer_writes_what_render_does(count: int | None, source: str, a: str, b: str, limit: int) -> None:
    """An empty or long key is none."""
    template, values = bound(source), {"a": a, "b": b}
    try:
        expected = template.render(values) if count is None else template.prefix(values, count)
    except EmptyKeyPart:
        expected = None
    if expected is not None and len(expected.encode()) > limit:
        expected = None
    assert template.writer(limit, count)(values) == expected


def test_key_length_is_limited_in_bytes() -> None:
    """A key with too many UTF-8 bytes raises an error with its size."""
    template = bound("A#{a}")
    assert len(template.render({"a": "x" * 1022}, limit=1024)) == 1024
    with pytest.raises(InvalidValue, match="would have 1026 bytes; DynamoDB takes 1024"):
        template.render({"a": "é" * 512}, limit=1024)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("COMPANY#{a}", "COMPANY#{b}", True),
        ("COMPANY#{a}", "PERSON#{b}", False),
        ("COMPANY#{a}", "COMPANY#{b}#{c}", False),
        ("COMPANY#{a}", "COMPANY", False),
        ("PEOPLE#{a}", "#METADATA", False),
        ("{a}", "COMPANY", True),
        ("{a}#x", "y#{b}", True),
        ("{a}", "COMPANY#{b}", False),
        ("root_{a}", "root_{b}_{c}", True),
        ("root_{a}_x", "root_{b}_y", False),
        ("A_{a}#{b}", "{c}#B", True),
        ("A#{a}#", "A#{a}#B", False),
    ],
)
def test_templates_that_could_make_one_key(first: str, second: str, expected: bool) -> None:
    """Two templates collide exactly if some values give both one key."""
    assert bound(first).could_equal(bound(second)) is expected
    assert bound(second).could_equal(bound(first)) is expected


def test_colliding_primary_keys_need_both_templates() -> None:
    """Sort keys distinguish models in one partition."""
    partition = bound("COMPANY#{a}")
    assert not can_collide((partition, bound("#METADATA")), (partition, bound("PEOPLE#{b}")))
    assert can_collide((partition, bound("PEOPLE#{a}")), (partition, bound("PEOPLE#{b}")))


@given(st.sampled_from(SOURCES), texts, texts, st.integers(0, 40))
def test_a_template_knows_its_own_keys(source: str, a: str, b: str, cut: int) -> None:
    """A template recognizes each of its keys, and each prefix of them."""
    template = bound(source)
    key = template.render({"a": a, "b": b})
    assert template.matches(key)
    assert template.could_start_with(key[:cut])
    assert not template.matches(key + "#")
    assert not template.could_start_with("\x00" + key)


@given(st.sampled_from(SOURCES), st.sampled_from(SOURCES), texts, texts)
def test_could_equal_never_misses_a_collision(first: str, second: str, a: str, b: str) -> None:
    """If a key of one template is a possible key of another, the two could be equal."""
    if bound(second).matches(bound(first).render({"a": a, "b": b})):
        assert bound(first).could_equal(bound(second))
