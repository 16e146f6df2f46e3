"""One class that is a PynamoDB model and a Django model: what both libraries see of it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pynamodb.models
import pytest
from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError
from django.db import models as django_models
from django.db.models.signals import post_init, pre_init
from django.forms import modelform_factory
from pynamodb.exceptions import DoesNotExist as PynamoDBDoesNotExist

from dynamo_single import exceptions, models
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.model.model import Model
from project.directory.models import Company, Office, Person
from tests.catalog.models import Firm, Order, Sample
from tests.unit.declaring import declare, forgotten


@pytest.fixture
def acme() -> Company:
    """Return an unsaved company."""
    return Company(company_id="company-1", name="Acme")


@pytest.mark.parametrize("kind", [pynamodb.models.Model, django_models.Model])
def test_an_object_is_of_both_kinds(acme: Company, kind: type) -> None:
    """An object is an instance of PynamoDB's and of Django's Model."""
    assert isinstance(acme, kind)


def test_every_attribute_is_a_real_django_field() -> None:
    """``_meta`` holds Django fields of the kinds that Django code expects."""
    kinds = {field.name: field.get_internal_type() for field in Company._meta.get_fields() if field.concrete}
    assert kinds == {
        "company_id": "CharField",
        "name": "CharField",
        "stock": "CharField",
        "founded": "DateField",
        "public": "BooleanField",
        "created_at": "DateTimeField",
        "updated_at": "DateTimeField",
        "deleted_at": "DateTimeField",
        "deleted_with": "CharField",
    }


def test_a_reference_is_a_foreign_key() -> None:
    """Django sees a many-to-one relation with its ``_id`` attribute."""
    field = Person._meta.get_field("company")
    assert (field.many_to_one, field.attname, field.related_model) == (True, "company_id", Company)


def test_the_class_attribute_builds_pynamodb_conditions() -> None:
    """``Order.number > 3`` is a condition with the stored name and the serialised value."""
    condition = (Order.number > 3) & Person.company_id.startswith("c")  # type: ignore[attr-defined]  # made by Django
    names: dict[str, str] = {}
    values: dict[str, Any] = {}
    condition.serialize(names, values)
    assert list(names) == ["number", "company_id"]
    assert list(values.values()) == [{"N": "3"}, {"S": "c"}]


def test_a_single_variable_is_the_primary_key_itself(acme: Company) -> None:
    """With one variable in the key ``pk`` reads as that attribute's plain value."""
    assert (acme.pk, Company._meta.pk.name) == ("company-1", "company_id")


def test_several_variables_are_joined_into_a_reversible_pk() -> None:
    """With several, ``pk`` is their values joined; setting it sets them."""
    person = Person(company_id="a/b", person_id="p 1", name="Mike")
    other = Person(name="Mike")
    other.pk = person.pk
    assert person.pk == "a~2Fb~~p~201"
    assert (other.company_id, other.person_id) == ("a/b", "p 1")


def test_pk_is_none_while_a_part_is_missing() -> None:
    """An object that lacks a part of its key has no identity yet."""
    assert Person(name="Mike").pk is None


def test_an_identifier_is_made_on_creation() -> None:
    """``IdAttribute`` gives each new object its own prefixed UUID."""
    first, second = Company(name="a"), Company(name="b")
    assert first.pk.startswith("company-")
    assert first.pk != second.pk


@pytest.mark.parametrize("base", [ObjectDoesNotExist, PynamoDBDoesNotExist, exceptions.DynamoSingleError])
def test_does_not_exist_is_what_every_caller_catches(base: type) -> None:
    """A model's ``DoesNotExist`` is Django's, PynamoDB's and ours, and its own."""
    assert issubclass(Company.DoesNotExist, base)
    assert Company.DoesNotExist is not Person.DoesNotExist


def test_already_exists_is_an_integrity_error() -> None:
    """Code that catches Django's IntegrityError catches ours."""
    assert issubclass(exceptions.AlreadyExists, IntegrityError)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda obj: pickle.loads(pickle.dumps(obj))])
def test_copies_own_their_values(acme: Company, duplicate: Any) -> None:
    """A copy equals its original and changes without it."""
    other = duplicate(acme)
    other.name = "Other"
    assert acme.name == "Acme"
    assert other == acme
    assert hash(other) == hash(acme)


def test_setting_a_reference_sets_its_stored_attribute(acme: Company) -> None:
    """Assigning an object keeps it at hand, and assigning another id forgets it."""
    person = Person(company=acme, name="Mike")
    assert (person.company_id, person.company is acme) == ("company-1", True)
    person.company_id = "company-2"
    assert not Person._meta.get_field("company").is_cached(person)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nme": "x"}, "Company() got an unexpected keyword argument 'nme'."),
        ({"partition_key": "x"}, "Company() got an unexpected keyword argument 'partition_key'."),
    ],
)
def test_unknown_arguments_are_refused_by_name(arguments: dict[str, Any], message: str) -> None:
    """The constructor accepts only the model's attributes."""
    with pytest.raises(TypeError) as raised:
        Company(**arguments)
    assert str(raised.value) == (
        f"{message} Its attributes are created_at, updated_at, deleted_at, deleted_with, company_id, name, stock, "
        "founded, public."
    )


def test_positional_arguments_are_refused() -> None:
    """PynamoDB and Django have different meanings for positional arguments."""
    with pytest.raises(TypeError, match=r"keyword arguments only"):
        Company("company-1", "x")


def test_a_key_and_the_item_type_cannot_be_set(acme: Company) -> None:
    """Keys are computed from the attributes."""
    assert (acme.partition_key, acme.sort_key) == ("COMPANY#company-1", "#METADATA")
    with pytest.raises(exceptions.NotSupported, match=r"computed from the attributes"):
        acme.partition_key = "x"
    with pytest.raises(exceptions.NotSupported, match=r"item's type"):
        acme.item_type = Person


def test_init_signals_are_sent(acme: Company) -> None:
    """``pre_init`` and ``post_init`` reach their receivers, for new objects and for read ones."""
    seen: list[str] = []

    def before(**kwargs: Any) -> None:
        seen.append("pre")

    def after(**kwargs: Any) -> None:
        seen.append("post")

    pre_init.connect(before, sender=Company)
    post_init.connect(after, sender=Company)
    try:
        Company.from_item(Company(company_id="company-1", name="Acme").serialize())
    finally:
        pre_init.disconnect(before, sender=Company)
        post_init.disconnect(after, sender=Company)
    assert seen == ["pre", "post", "pre", "post"]


def test_an_item_of_another_type_is_refused(acme: Company) -> None:
    """An item is never read as another model's object."""
    with pytest.raises(exceptions.UnexpectedItem, match=r"itemType 'Company', and directory.Person reads 'Person'"):
        Person.from_item(acme.serialize())


def test_pynamodbs_update_is_refused_by_name(acme: Company) -> None:
    """PynamoDB's ``update(actions)`` would leave dependent keys outdated, so the error names the alternative."""
    with pytest.raises(exceptions.NotSupported, match=r"the queryset's update"):
        acme.update(actions=[Company.name.set("x")])


def test_the_whole_item_is_computed_without_a_request(acme: Company) -> None:
    """PynamoDB's ``serialize()`` gives the item with its keys, its type and its index keys."""
    item = acme.serialize()
    keys = {name: item[name]["S"] for name in ("pk", "sk", "itemType", "gs1pk", "gs1sk")}
    assert keys == {
        "pk": "COMPANY#company-1",
        "sk": "#METADATA",
        "itemType": "Company",
        "gs1pk": "COMPANY",
        "gs1sk": "Acme#company-1",
    }
    assert "stock" not in item


def test_an_optional_part_leaves_the_item_out_of_that_index() -> None:
    """A missing part means no index key at all, never half of one."""
    item = Order(customer="c", number=1).serialize()
    assert not {"gs1pk", "gs1sk", "gs2pk", "gs2sk"} & set(item)


def test_abstract_bases_lend_their_attributes_to_each_model() -> None:
    """Two models that inherit one attribute have one each."""
    assert Company.created_at is not Person.created_at
    assert (Company.created_at.attr_name, Person.created_at.field.model) == ("createdAt", Person)


# errors of declarations


def test_a_model_without_a_primary_key_is_refused() -> None:
    """The error for a model without keys names the missing part."""
    with pytest.raises(exceptions.ConfigurationError, match=r'Keys: primary = models.Key\("LONELY#\{lonely_id\}"'):

        class Lonely(Model):
            name = models.UnicodeAttribute()

            class Meta:
                app_label = "catalog"


def test_a_key_without_a_variable_is_refused() -> None:
    """A constant primary key could only ever hold one object."""
    with pytest.raises(exceptions.ConfigurationError, match=r"names no attribute"):

        class Constant(Model):
            class Keys:
                primary = models.Key("CONSTANT", "CONSTANT")

            class Meta:
                app_label = "catalog"


def test_multi_table_inheritance_is_refused() -> None:
    """An item belongs to one model; the message names both alternatives."""
    with pytest.raises(exceptions.ConfigurationError, match=r"make Firm abstract .* or BigFirm a proxy"):

        class BigFirm(Firm):
            class Meta:
                app_label = "catalog"


def test_a_proxy_model_reads_the_same_items() -> None:
    """A proxy has its parent's keys and items."""

    class Headquarters(Office):
        class Meta:
            proxy = True
            app_label = "catalog"

    item = Office(company_id="c", office_id="o", city="Rome").serialize()
    assert isinstance(Headquarters.from_item(item), Headquarters)


def test_children_refer_to_a_proxy() -> None:
    """A reference to a proxy refers to its parent's objects."""
    with forgotten():

        class CityOffice(Office):
            class Meta:
                proxy = True
                app_label = "catalog"

        class Desk(models.Model):
            desk_id = models.IdAttribute()
            office = models.ReferenceAttribute(CityOffice, on_delete=models.CASCADE)

            class Keys:
                primary = models.Key("DESK#{desk_id}", "#METADATA")
                by_office = models.IndexKey("gs1", "DESK#{office_id}", "{desk_id}")

            class Meta:
                app_label = "catalog"

        found = models.Children(Desk)
        found.__set_name__(Office, "desks")
        assert found.field.name == "office"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verbos_name": "x"}, "Typo.Meta has no option 'verbos_name'"),
        ({"table_name": "x"}, "settings.DYNAMO_SINGLE"),
        ({"managed": True}, "Typo.Meta.managed cannot be set"),
    ],
)
def test_unknown_meta_options_are_refused(options: dict[str, Any], message: str) -> None:
    """An unused option raises an error with its right place."""
    with pytest.raises(exceptions.ConfigurationError, match=message):
        type("Typo", (Model,), {"__module__": "tests.catalog.models", "Meta": type("Meta", (), options)})


def test_a_mutable_default_is_refused() -> None:
    """All objects would share a list or a dict as default."""
    with pytest.raises(exceptions.ConfigurationError, match=r"give the callable dict instead"):
        models.MapAttribute(default={})


def test_two_models_with_one_item_type_are_refused() -> None:
    """Two models with one item type in a table are indistinguishable."""
    with pytest.raises(exceptions.ConfigurationError, match=r"would both be stored with itemType 'Sample'"):

        class Duplicate(Model):
            duplicate_id = models.IdAttribute()

            class Keys:
                primary = models.Key("DUPLICATE#{duplicate_id}", "#METADATA")

            class Meta:
                app_label = "catalog"
                item_type = "Sample"


def test_full_clean_validates_as_django_does() -> None:
    """Choices, lengths and required fields are Django's own validation."""
    from django.core.exceptions import ValidationError

    sample = Sample(text="x" * 50, email="no address")
    with pytest.raises(ValidationError) as raised:
        sample.full_clean(validate_unique=False)
    assert set(raised.value.message_dict) == {"text", "email"}


@pytest.mark.parametrize(
    ("attributes", "advice"),
    [
        ({}, r"Declare nokey_id = models\.IdAttribute\(\) and class Keys: primary = models\.Key\(\"NOKEY#{nokey_id}\""),
        (
            {"nokey_id": models.UnicodeAttribute()},
            r"key\. Declare class Keys: primary = models\.Key\(\"NOKEY#{nokey_id}\"",
        ),
        ({"own": models.IdAttribute()}, r"key\. Declare class Keys: primary = models\.Key\(\"NOKEY#{own}\""),
    ],
)
def test_a_model_without_a_primary_key_is_told_how_one_is_declared(attributes: dict[str, Any], advice: str) -> None:
    """The message contains the needed attribute, unless the model has it."""
    with pytest.raises(ConfigurationError, match=advice):
        type(models.Model)("Nokey", (models.Model,), {"__module__": __name__, "__qualname__": "Nokey", **attributes})


@pytest.mark.parametrize("bases", [(), ("abstract",)], ids=["declared", "inherited"])
def test_forms_have_relations_in_declared_order(bases: tuple[str, ...]) -> None:
    """Django sorts fields by the order in which classes declare them, attributes and relations alike."""
    with forgotten():
        declared: dict[str, Any] = {
            "title": models.UnicodeAttribute(),
            "people": models.ManyToMany(Person, related_name="+"),
            "text": models.UnicodeAttribute(),
        }
        key, own = ("SHELVES#{shelf}", "#METADATA"), {"shelf": models.UnicodeAttribute()}
        if bases:
            parent = declare("Parent", key, options={"abstract": True}, **own, **declared)
            model = declare("Shelves", key, bases=(parent,), last=models.UnicodeAttribute())
        else:
            model = declare("Shelves", key, **own, **declared, last=models.UnicodeAttribute())
        form = modelform_factory(model, fields="__all__")
    assert [*form.base_fields] == ["shelf", "title", "people", "text", "last"]
