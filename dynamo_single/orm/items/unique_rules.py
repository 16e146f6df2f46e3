"""A model's unique declarations: ``unique=True``, ``unique_together`` and ``UniqueConstraint``, as one kind of value.

A rule determines which items hold a claim, and its key. This module does not depend on the writing of claims, and does
not send requests.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models import CheckConstraint, UniqueConstraint
from msgspec import Struct

from dynamo_single.conf import table_settings
from dynamo_single.exceptions import ConfigurationError, DynamoSingleError, InvalidValue
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition, names_in
from dynamo_single.orm.conditions.wording import plain_condition
from dynamo_single.orm.plan.unique_lookups import Lookup
from dynamo_single.orm.requests.actions import Item, ItemKey
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.attributes import Attribute, CanonicalAttribute, UnicodeSetAttribute
from dynamo_single.orm.schema.bindings import ModelBinding, fact
from dynamo_single.orm.schema.fingerprints import shortened
from dynamo_single.orm.schema.keys.template import SEPARATOR, Template, canonical, codec_for, prefix_end
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where import declared_conditions as where_declared
from dynamo_single.table import names
from dynamo_single.table.request import PARTITION_KEY_LIMIT, SORT_KEY_LIMIT

CLAIM_SORT_KEY = "#CLAIM"


class ClaimRule(Struct, frozen=True, eq=False):
    """Some attributes whose values, taken together, only one live item of a type has.

    ``condition`` is in stored names: an item that does not meet it holds no claim. ``name`` is the constraint's, which
    claims contain only with a condition. ``members`` is a set whose members are claimed as values of the one attribute.
    """

    alias: str
    item_type: str
    attributes: tuple[Attribute, ...]
    name: str = ""
    condition: Condition = EVERYTHING
    members: Attribute | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The attributes' Python names."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def stored_names(self) -> frozenset[str]:
        """The physical names of all attributes that determine an item's claim."""
        members = () if self.members is None else (self.members,)
        stored = (attribute.attr_name for attribute in (*self.attributes, *members))
        return frozenset({*stored, *names_in(self.condition)})

    def values(self, item: Item) -> tuple[object, ...] | None:
        """The values that a stored item has to be alone with; ``None`` if one is missing or empty."""
        stored = [item.get(attribute.attr_name) for attribute in self.attributes]
        found = tuple(
            None if value is None else attribute.from_attribute_value(dict(value))
            for attribute, value in zip(self.attributes, stored, strict=True)
        )
        return None if any(value is None or value == "" for value in found) else found

    def claimed(self, item: Item) -> dict[ItemKey, tuple[object, ...]]:
        """The keys of all claims that a stored item has to hold, and the values that each is on."""
        if names.DELETED_AT in item or not self.applies(item):
            return {}
        values = self.values(item)
        found = {} if values is None else {self.key(values): values}
        if self.members is not None and self.members.attr_name in item:
            for member in sorted(self.members.from_attribute_value(dict(item[self.members.attr_name]))):
                found.setdefault(self.key((member,)), (member,))
        return found

    def key_of(self, item: Item) -> ItemKey | None:
        """Return the key of the claim that a stored item must hold; ``None`` without one."""
        return None if names.DELETED_AT in item or not self.applies(item) else self.claim_of(item)

    def claim_of(self, item: Item) -> ItemKey | None:
        """The key of the claim on the values of an item, whatever else it has; ``None`` if one is missing."""
        values = self.values(item)
        return None if values is None else self.key(values)

    def applies(self, item: Item) -> bool:
        """Return whether an item meets the rule's condition."""
        return self.condition == EVERYTHING or matches(self.condition, item)

    def key(self, values: Sequence[object]) -> ItemKey:
        """Return the key of the claim on values: strings in Unicode NFC, canonical ones without regard to case.

        The attributes' names come first and the values after them, so that no two rules and no two tuples of values
        share a claim.
        """
        parts: dict[str, Any] = {"item_type": self.item_type}
        codecs = {"item_type": codec_for("text")}
        variables = zip(*_variables(len(self.attributes)), strict=True)
        for attribute, value, (variable, place) in zip(self.attributes, values, variables, strict=True):
            parts |= {variable: attribute.attr_name, place: _normal(attribute, value)}
            codecs |= {variable: codec_for("text"), place: codec_for(str(attribute.key_kind))}
        partition, sort = claim_templates(len(self.attributes), named=bool(self.name))
        sort_key = sort.bind({"name": codec_for("text")}).render({"name": self.name}, limit=SORT_KEY_LIMIT)
        prefix = table_settings(self.alias).own_prefix
        return prefix + partition.bind(codecs).render(parts, limit=PARTITION_KEY_LIMIT - len(prefix)), sort_key

    def key_range(self) -> tuple[str, str, Callable[[ItemKey], bool]]:
        """Return the range of the rule's claims, which contains all partition keys from the first string to the second.

        The function distinguishes the rule's claims from those of other rules.
        """
        variables, _ = _variables(len(self.attributes))
        parts = {"item_type": self.item_type}
        parts |= {name: each.attr_name for name, each in zip(variables, self.attributes, strict=True)}
        partition, sort = claim_templates(len(self.attributes), named=bool(self.name))
        codecs = dict.fromkeys(partition.variables, codec_for("text"))
        own_prefix = table_settings(self.alias).own_prefix
        prefix = own_prefix + partition.bind(codecs).prefix(parts, 1 + len(self.attributes))
        sort_key = sort.bind({"name": codec_for("text")}).render({"name": self.name})
        # No value has a separator in it: a rule over more attributes has more of them.
        separators = partition.source.count(SEPARATOR) + own_prefix.count(SEPARATOR)

        def fits(key: ItemKey) -> bool:
            return key[0].startswith(prefix) and key[1] == sort_key and key[0].count(SEPARATOR) == separators

        return prefix, prefix_end(prefix), fits

    @property
    def fingerprint(self) -> str:
        """A short text of the claims that the rule makes, by physical names, such as ``email:text:canonical``.

        Others are ``hall:text,row:number one_seat ('=', ...)`` with a condition and ``email:text +others`` with a set.
        """
        texts = (
            f"{each.attr_name}:{each.key_kind}{':canonical' if each.canonical and each.key_kind == 'text' else ''}"
            for each in self.attributes
        )
        condition_text = "" if self.condition == EVERYTHING else repr(plain_condition(self.condition))
        more = "" if self.members is None else f"+{self.members.attr_name}"
        return shortened(" ".join(part for part in (",".join(texts), self.name, condition_text, more) if part))


class Rule(ClaimRule, frozen=True, eq=False):
    """A rule that a model declares; ``constraint`` is Django's, if it was declared as one."""

    model: Any = None
    constraint: UniqueConstraint | None = None

    @classmethod
    def of(
        cls,
        model: Any,
        attributes: tuple[Attribute, ...],
        condition: Condition = EVERYTHING,
        constraint: UniqueConstraint | None = None,
        members: Attribute | None = None,
    ) -> Rule:
        """Return the rule of a declaration."""
        options = model._options
        name = constraint.name if constraint is not None and condition != EVERYTHING else ""
        return cls(options.alias, options.item_type, attributes, name, condition, members, model, constraint)

    @property
    def needs_claims(self) -> bool:
        """Whether it needs claims: the primary key is unique by itself, as is every rule that contains it."""
        return self.condition != EVERYTHING or not set(self.model._identity) <= set(self.fields)

    def key(self, values: Sequence[object]) -> ItemKey:
        """Return the key of the claim on values, as for any rule; an error names the model."""
        try:
            return ClaimRule.key(self, values)
        except InvalidValue as error:
            which = f"this {self.fields[0]}" if len(self.fields) == 1 else f"these {', '.join(self.fields)} together"
            raise InvalidValue(
                f"{self.model._meta.label}: {which} cannot be unique, since that takes a key. {error}"
            ) from error

    @property
    def lookup(self) -> Lookup:
        """The rule as a way to find an object."""
        folded = {each.name for each in self.attributes if each.canonical and each.key_kind == "text"}
        copies = (each for each in registry.attributes_of(self.model).values() if isinstance(each, CanonicalAttribute))
        return Lookup(
            self.fields,
            self.fingerprint,
            self.stored_names,
            self.claim_of,
            self.claimed,
            self.condition,
            frozenset(folded),
            {each.source: each.name for each in copies if each.fold == "canonical" and each.source in folded},
        )

    def worded(self, values: Sequence[object]) -> str:
        """Return the attributes and their values for a message, with masked secrets."""
        return secrecy.worded(self.model, self.fields, values)


def _normal(attribute: Attribute, value: object) -> object:
    if not isinstance(value, str):
        return value
    return canonical(value) if attribute.canonical else unicodedata.normalize("NFC", value)


def _variables(count: int) -> tuple[list[str], list[str]]:
    numbers = [str(number or "") for number in range(count)]
    return [f"attribute{number}" for number in numbers], [f"value{number}" for number in numbers]


@cache
def claim_templates(count: int, *, named: bool) -> tuple[Template, Template]:
    """Return the templates of the claims of rules with ``count`` attributes, ``named`` for those with a condition."""
    attributes, values = _variables(count)
    parts = "#".join(f"{{{variable}}}" for variable in ("item_type", *attributes, *values))
    sort = f"{CLAIM_SORT_KEY}#{{name}}" if named else CLAIM_SORT_KEY
    return Template.parse(f"{names.UNIQUE_PREFIX}#{parts}"), Template.parse(sort)


def claim_keys() -> Iterator[tuple[str, str]]:
    """The templates of all claims that the models' declarations can make, which no model's own keys may meet."""
    counts = {1}
    for model in registry.all_models():
        together = (fields for fields in model._meta.unique_together if fields != model._unique_key)
        counts |= {len(fields) for fields in together}
        constraints: Iterable[Any] = model._meta.constraints
        counts |= {len(each.fields) for each in constraints if isinstance(each, UniqueConstraint)}
    for count in sorted(counts):
        for named in (False, True):
            partition, sort = claim_templates(count, named=named)
            yield partition.source, sort.source


def claim_prefix(model: type[DynamoModel]) -> str:
    """Return the beginning of the partition keys of all claims of a model's objects."""
    template = claim_templates(1, named=False)[0]
    codecs = dict.fromkeys(template.variables, codec_for("text"))
    options = model._options
    prefix = table_settings(options.alias).own_prefix
    return prefix + template.bind(codecs).prefix({"item_type": options.item_type}, 1)


def rules_of(model: type[DynamoModel]) -> tuple[Rule, ...]:
    """Everything that the model declares unique and its primary key does not keep so already.

    Raises ``ConfigurationError`` for a declaration that no claim can follow.
    """
    return _rules_of(model._meta.concrete_model)


@cache
def _rules_of(model: type[DynamoModel]) -> tuple[Rule, ...]:
    found: dict[tuple[tuple[str, ...], str], Rule] = {}
    for rule in declared_rules(model):
        for attribute in rule.attributes:
            if attribute.key_kind is None:
                raise ConfigurationError(
                    f"{model._meta.label}.{attribute.name} cannot be unique: a {type(attribute).__name__} cannot be in "
                    "a key."
                )
        if rule.needs_claims:
            found.setdefault((rule.fields, rule.name), rule)
    return tuple(found.values())


def names_by_fingerprint(model: type[DynamoModel]) -> dict[str, str]:
    """The fingerprints of a model's rules, each with its attributes for messages."""
    return {rule.fingerprint: " and ".join(rule.fields) for rule in rules_of(model)}


@fact
def lookups_of(binding: ModelBinding) -> tuple[Lookup, ...]:
    """Return the ways to find an object of a model by unique values."""
    return _lookups_of(binding.model._meta.concrete_model)


@cache
def _lookups_of(model: type[DynamoModel]) -> tuple[Lookup, ...]:
    return tuple(rule.lookup for rule in rules_of(model))


@cache
def declared_rules(model: type[DynamoModel]) -> tuple[Rule, ...]:
    """Return one rule for each declaration, even if several are equal or repeat the primary key."""
    return tuple(_declared(model))


def _declared(model: Any) -> Iterator[Rule]:
    for attribute in registry.attributes_of(model).values():
        if attribute.unique:
            yield Rule.of(model, (attribute,), members=_members(model, attribute.name))
    for fields in model._meta.unique_together:
        yield Rule.of(model, _attributes(model, fields, "unique_together"))
    for constraint in model._meta.constraints:
        if not isinstance(constraint, UniqueConstraint):
            continue
        attributes = _attributes(model, constraint.fields, constraint.name)
        yield Rule.of(model, attributes, _condition(model, constraint), constraint)


def _members(model: type[DynamoModel], name: str) -> Attribute | None:
    """The set whose members are unique as the values of an attribute are, if there is one."""
    attributes = registry.attributes_of(model)
    found = [each for each, of in model.unique_members.items() if of == name]
    if not found:
        return None
    if len(found) > 1 or not isinstance(attributes.get(found[0]), UnicodeSetAttribute):
        raise ConfigurationError(
            f"{model._meta.label}.unique_members: {', '.join(found)} cannot be unique with {name}: name one "
            "UnicodeSetAttribute."
        )
    return attributes[found[0]]


def _attributes(model: type[DynamoModel], fields: Sequence[str], where: str) -> tuple[Attribute, ...]:
    attributes = registry.attributes_of(model)
    found = []
    for name in fields:
        try:
            field: Any = model._meta.get_field(name)
        except FieldDoesNotExist as error:
            first, _, rest = name.partition("__")
            inside = rest and first in attributes and attributes[first].document
            way_out = (
                f' Declare an attribute for the nested value: models.ExtractedAttribute("{name}").' if inside else ""
            )
            raise ConfigurationError(
                f"{model._meta.label}: {where} names {name!r}, which is no attribute. It has {', '.join(attributes)}."
                f"{way_out}"
            ) from error
        if getattr(field, "attname", None) not in attributes:
            raise ConfigurationError(
                f"{model._meta.label}: {where} names {name!r}, which is not stored as one attribute. Name attributes: "
                f"{', '.join(attributes)}."
            )
        found.append(attributes[field.attname])
    return tuple(found)


def _condition(model: type[DynamoModel], constraint: UniqueConstraint) -> Condition:
    try:
        return where_declared.read_declared(model, constraint.condition)
    except DynamoSingleError as error:
        raise ConfigurationError(f"{model._meta.label}: the condition of {constraint.name}: {error}") from error


#: Unsupported options of Django's ``UniqueConstraint``, and their alternatives.
_UNSUPPORTED = {
    "expressions": "store the result in a separate attribute and name that (CanonicalAttribute folds a string)",
    "deferrable": "remove it: one transaction takes and releases claims together",
    "include": "leave it out: a claim holds its owner's key only",
    "opclasses": "remove it: strings are compared in Unicode NFC, and canonical=True strings without regard to case",
}


def check_constraint(owner: str, constraint: object) -> None:
    """Refuse a constraint that DynamoDB cannot keep, by its name; raises ``ConfigurationError``."""
    where = f"{owner}.Meta.constraints: {getattr(constraint, 'name', constraint)!r}"
    if isinstance(constraint, CheckConstraint):
        return
    if not isinstance(constraint, UniqueConstraint):
        raise ConfigurationError(
            f"{where} is a {type(constraint).__name__}, which DynamoDB cannot keep. Use validators or the model's "
            "clean(), and for a single write a condition."
        )
    for option, instead in _UNSUPPORTED.items():
        if getattr(constraint, option):
            raise ConfigurationError(f"{where} has {option}, which claims cannot follow: {instead}.")
    if constraint.nulls_distinct is False:
        raise ConfigurationError(
            f"{where} has nulls_distinct=False, but an item without a value has no value to claim. Give the "
            "attribute a default that represents no value, or remove the option."
        )
