"""The models for a table's items, and the constant strings of their keys."""

from __future__ import annotations

import pytest

from tests.unit.inspection.tables import item, primary_keys, sample, written

COMPOSED = ("PK", "SK")


def keys_of(
    *items: dict[str, object], table: str = "data", keys: tuple[str, ...] = COMPOSED
) -> dict[str, tuple[str, ...]]:
    """Return the templates for the items of a table."""
    return primary_keys(written(sample(keys, [item(**each) for each in items]), table))


def test_attributes_replace_their_values_in_keys() -> None:
    """A key's part that equals an attribute in every item is that attribute."""
    orders = [{"PK": f"CUSTOMER#c{n}", "SK": f"ORDER#{n}", "customer": f"c{n}", "order": f"{n}"} for n in range(3)]
    assert keys_of(*orders) == {"Order": ("CUSTOMER#{customer}", "ORDER#{order}")}


def test_identifier_wins_among_equal_attributes() -> None:
    """Total and number are equal to the identifier in each item; the name decides."""
    orders = [{"PK": "ORDERS", "SK": f"ORDER#{n}", "total": n, "order_id": f"{n}", "other": f"{n}"} for n in range(3)]
    assert keys_of(*orders) == {"Order": ("ORDERS", "ORDER#{order_id}")}


def test_coincidence_in_one_item_is_excluded() -> None:
    """The quantity equals the identifier in one item only."""
    orders = [{"PK": "ORDERS", "SK": f"ORDER#{n}", "quantity": 1, "code": f"{n}"} for n in range(3)]
    assert keys_of(*orders) == {"Order": ("ORDERS", "ORDER#{code}")}


def test_free_text_is_no_composed_key() -> None:
    """PynamoDB's subjects contain '#', and a word is not before each of them."""
    threads = [{"forum": "DynamoDB", "subject": text} for text in ("How to #1?", "Issue#7 again", "C# and more")]
    assert keys_of(*threads, keys=("forum", "subject"), table="Thread") == {"Thread": ("{forum}", "{subject}")}


def test_sole_items_are_kinds_of_their_own() -> None:
    """The profile and the settings of a user have different attributes."""
    users = [{"PK": f"USER#{n}", "SK": "PROFILE", "name": f"n{n}"} for n in range(3)]
    settings = [{"PK": f"USER#{n}", "SK": "SETTINGS", "theme": "dark"} for n in range(3)]
    found = keys_of(*users, *settings)
    assert {*found.values()} == {("USER#{user}", "PROFILE"), ("USER#{user}", "SETTINGS")}


def test_value_in_key_only_is_named_by_its_label() -> None:
    """No attribute contains the organization and the user."""
    seats = [{"PK": f"ORG#o{n}", "SK": f"USER#u{n}", "name": "x"} for n in range(3)]
    text = written(sample(COMPOSED, [item(**each) for each in seats]))
    assert "    user = models.UnicodeAttribute(in_key_only=True)  # only the key has it" in text


def test_types_divide_the_items() -> None:
    """The type attribute is a setting, and its values are the models' types."""
    found = [{"PK": f"X#{n}", "SK": f"{kind}#{n + 5}", "_type": kind} for n in range(3) for kind in ("Cat", "Dog")]
    text = written(sample(COMPOSED, [item(**each) for each in found]))
    assert primary_keys(text) == {"Cat": ("X#{x}", "Cat#{cat}"), "Dog": ("X#{x}", "Dog#{dog}")}
    assert '"TYPE_ATTRIBUTE": "_type"' in text


def test_types_with_equal_keys_are_one_model() -> None:
    """PynamoDB's discriminators divide items whose keys do not differ."""
    found = [{"id": f"{n}", "cls": ("Cat", "Dog")[n % 2]} for n in range(6)]
    text = written(sample(("id",), [item(**each) for each in found]), "pets")
    assert primary_keys(text) == {"Pet": ("{id}",)}
    assert '"TYPE_ATTRIBUTE": None' in text


@pytest.mark.parametrize(
    "items",
    [
        pytest.param([{"PK": "USER#jane", "SK": f"ORDER#{n}"} for n in range(9)], id="only user"),
        pytest.param([{"PK": "jane", "SK": f"ORDER#{n}"} for n in range(9)], id="only partition"),
        pytest.param([{"PK": "JANE", "SK": f"ORDER#{n}"} for n in range(9)], id="in capitals"),
        pytest.param([{"PK": f"ORDER#{n}", "SK": "jane"} for n in range(9)], id="only sort key"),
        pytest.param([{"PK": f"ORDER#{n}", "SK": "CUSTOMER#JANE"} for n in range(9)], id="after a label"),
        pytest.param([{"PK": f"jane#{n}", "SK": "PROFILE"} for n in range(9)], id="leads every key"),
        pytest.param([{"PK": f"JANE#{n}", "SK": "PROFILE", "owner": "Jane Doe"} for n in range(9)], id="is mentioned"),
        pytest.param([{"PK": "JANE#DOE", "SK": "PROFILE"}], id="one item"),
        pytest.param([{"PK": f"JANE#{n}", "SK": "NOTE"} for n in range(2)]
            + [{"PK": f"BOB#{n}", "SK": "NOTE"} for n in range(2)]
            + [{"PK": f"EVE#{n}", "SK": "NOTE"} for n in range(2)]
            + [{"PK": f"TOM#{n}", "SK": "NOTE"} for n in range(2)], id="several people"),
        pytest.param([{"PK": "ORDERS", "SK": f"{n}", "GSI1PK": "CUSTOMER#jane", "GSI1SK": "x"} for n in range(3)],
            id="index"),
        pytest.param([{"PK": "ORDERS", "SK": f"{n}", "status": "jane"} for n in range(30)], id="value"),
        pytest.param([{"PK": "ORDERS", "SK": f"{n}", "data": {"jane": n}} for n in range(3)], id="member of a map"),
    ],
)  # fmt: skip
def test_person_never_becomes_source(items: list[dict[str, object]]) -> None:
    """A person's name in the keys of all items is a value, whatever the sample looks like."""
    found = sample(COMPOSED, [item(**each) for each in items], [("GSI1", ("GSI1PK", "GSI1SK"))])
    assert "jane" not in written(found).lower()


def test_secret_never_becomes_a_constant() -> None:
    """A string with the form of a token is a value, even if all keys contain it."""
    token = "sk_live_" + "a" * 20
    assert token not in written(sample(COMPOSED, [item(PK=f"{token}#{n}", SK="A") for n in range(3)]))


def test_reference_is_declared_by_name_and_values() -> None:
    """Each customer_id is the primary key of a customer."""
    customers = [item(PK=f"CUSTOMER#c{n}", SK="PROFILE", customer_id=f"c{n}") for n in range(2)]
    orders = [item(PK=f"ORDER#{n}", SK="ORDER", order_id=f"{n}", customer_id=f"c{n % 2}") for n in range(5)]
    text = written(sample(COMPOSED, [*customers, *orders]))
    assert 'customer = models.ReferenceAttribute("Customer", on_delete=models.DO_NOTHING, related_name="+")' in text


def test_unnamed_reference_is_a_note() -> None:
    """The values are customers, but the name does not show it."""
    customers = [item(PK=f"CUSTOMER#c{n}", SK="PROFILE", customer_id=f"c{n}") for n in range(4)]
    orders = [item(PK=f"ORDER#{n}", SK="ORDER", order_id=f"{n}", buyer=f"c{n % 4}") for n in range(5)]
    text = written(sample(COMPOSED, [*customers, *orders]))
    assert 'its values are keys of Customer: models.ReferenceAttribute("Customer")?' in text


def test_index_key_that_no_attribute_repeats_is_an_attribute() -> None:
    """A score that only the index contains cannot be built from other attributes."""
    found = [item(PK=f"PLAYER#{n}", SK="A", player=f"{n}", GSI1PK="GAME", GSI1SK=f"{n * 7:05d}") for n in range(3)]
    text = written(sample(COMPOSED, found, [("GSI1", ("GSI1PK", "GSI1SK"))]))
    assert 'gsi1_sk = models.UnicodeAttribute(attr_name="GSI1SK")' in text
    assert 'gsi1 = models.IndexKey("gsi1", "GAME", "{gsi1_sk}")' in text


def test_sparse_index_does_not_gain_items() -> None:
    """An item outside of the index has all attributes of its key: a template would put it into the index."""
    found = [
        item(PK=f"JOB#{n}", SK="A", job=f"{n}", **({"GSI1PK": "JOBS", "GSI1SK": f"{n}"} if n else {})) for n in range(4)
    ]
    text = written(sample(COMPOSED, found, [("GSI1", ("GSI1PK", "GSI1SK"))]))
    assert 'models.IndexKey("gsi1", "{gsi1_pk}", "{gsi1_sk}")  # 3 of 4 items are in it' in text


def test_empty_table_has_a_model_of_its_keys() -> None:
    """Without items, only the keys are known."""
    text = written(sample(("user_id", "number:N"), [], [("by-mail", ("mail",))]), "posts")
    assert primary_keys(text) == {"Post": ("{user_id}", "{number}")}
    assert 'by_mail = models.IndexKey("by_mail", "{mail}")' in text


def test_few_foreign_items_do_not_change_the_models() -> None:
    """One item of another form is counted, and does not make all keys generic."""
    customers = [item(PK=f"CUSTOMER#{n}", SK="PROFILE", customer_id=f"{n}") for n in range(40)]
    others = [item(PK="x", SK="y"), item(PK="CUSTOMER#a#b", SK="PROFILE", customer_id="a#b")]
    text = written(sample(COMPOSED, [*customers, *others]))
    assert primary_keys(text) == {"Customer": ("CUSTOMER#{customer_id}", "PROFILE")}
    assert '"FOREIGN": "skip"' in text
    assert "# 2 items have no model. FOREIGN decides" in text


def test_many_foreign_items_make_keys_general() -> None:
    """A tenth of the items is too much to omit: one model reads all of them."""
    customers = [item(PK=f"CUSTOMER#{n}", SK="PROFILE", customer_id=f"{n}") for n in range(9)]
    text = written(sample(COMPOSED, [*customers, item(PK="x", SK="y")]))
    assert [*primary_keys(text).values()] == [("{pk_field}", "{sk}")]


def test_few_items_without_a_type_have_no_model() -> None:
    """The type attribute of the others still divides them."""
    found = [item(PK=f"X#{n}", SK=f"{kind}#{n}", _type=kind) for n in range(20) for kind in ("Cat", "Dog")]
    text = written(sample(COMPOSED, [*found, item(PK="UNIQUE#1", SK="#CLAIM")]))
    assert '"TYPE_ATTRIBUTE": "_type"' in text
    assert {*primary_keys(text)} == {"Cat", "Dog"}
