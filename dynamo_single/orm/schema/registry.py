"""The registered models, and the layout of each.

Layouts are built on first access, because a reference's target may be declared later than the reference. This module
does not depend on requests or querysets.
"""

from __future__ import annotations

from functools import cache, cached_property, partial
from typing import Any, TypeVar

from dynamo_single import conf
from dynamo_single.conf.shapes import OWN, Shape
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema import bindings, identities
from dynamo_single.orm.schema.attributes import (
    Attribute,
    CanonicalAttribute,
    CopiedAttribute,
    CounterAttribute,
    ExtractedAttribute,
    IdAttribute,
    TimestampAttribute,
    TTLAttribute,
    VersionAttribute,
)
from dynamo_single.orm.schema.attributes.computed import ComputedAttribute
from dynamo_single.orm.schema.keys.reach import reaches_of
from dynamo_single.orm.schema.keys.shards import Sharding, Shards
from dynamo_single.orm.schema.keys.stored_keys import check_sort_key, shaped_template
from dynamo_single.orm.schema.keys.template import Codec, IndexKey, Key, KeyPart, Template, codec_for, sharding_of
from dynamo_single.orm.schema.layout import AccessKey, AttributeInfo, ModelLayout
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names

T = TypeVar("T")

_MODELS: dict[str, type[DynamoModel]] = {}
#: The models' labels by table alias and item type, so that a declaration does not have to search the others.
_LABELS: dict[tuple[str, str], str] = {}
_MODELS_OF_LAYOUTS: dict[ModelLayout, type[DynamoModel]] = {}

TRASH = "trash"
DELETED_AT = "deleted_at"
DELETED_WITH = "deleted_with"
#: The attribute that ``Meta.purge_after`` gives a model.
PURGE_AT = "purge_at"
ITEM_TYPE = "item_type"


def labels_of(alias: str) -> list[str]:
    """The models whose table an alias is."""
    return [model._meta.label for model in _MODELS.values() if model._options.alias == alias]


conf.tell_of(labels_of)


def register(model: type[DynamoModel]) -> None:
    """Take a concrete model in; two models of one table may not share an item type."""
    label, stored_as = model._meta.label_lower, _stored_as(model)
    other = _MODELS.get(_LABELS.get(stored_as, label))
    if other is not None and other._meta.label_lower != label and _stored_as(other) == stored_as:
        raise ConfigurationError(
            f"{model._meta.label} and {other._meta.label} would both be stored with itemType {stored_as[1]!r}. "
            'Give one of them another: class Meta: item_type = "...".'
        )
    _MODELS[label] = model
    _LABELS[stored_as] = label
    invalidate()


def _stored_as(model: type[DynamoModel]) -> tuple[str, str]:
    return model._options.alias, model._options.item_type


def invalidate() -> None:
    """Note that there are other models than before."""
    bindings.begin_generation()


def all_models() -> tuple[type[DynamoModel], ...]:
    """Every concrete model, in the order of declaration."""
    return tuple(_MODELS.values())


def model_of_type(alias: str, item_type: str) -> type[DynamoModel] | None:
    """The model whose items carry this ``itemType`` in the table."""
    for model in _MODELS.values():
        if model._options.item_type == item_type and model._options.alias == alias:
            return model
    return None


def attributes_of(model: type[DynamoModel]) -> dict[str, Attribute]:
    """The model's own attributes by Python name, in the order of declaration."""
    return _attributes_of(model)


@cache
def _attributes_of(model: type[DynamoModel]) -> dict[str, Attribute]:
    declared = ((field.attname, getattr(field, "attribute", None)) for field in model._meta.concrete_fields)
    return {name: attribute for name, attribute in declared if isinstance(attribute, Attribute)}


def has_soft_delete(model: type[DynamoModel]) -> bool:
    """Return whether the model's objects have a trash."""
    return DELETED_AT in attributes_of(model)


def copies_of(model: type[DynamoModel]) -> tuple[ComputedAttribute, ...]:
    """Return the attributes computed from others of the same object: folded copies of strings, and extracted values."""
    return tuple(each for each in attributes_of(model).values() if isinstance(each, ComputedAttribute))


def extracted_of(model: type[DynamoModel]) -> tuple[ExtractedAttribute, ...]:
    """The values that the model keeps out of its documents."""
    return tuple(each for each in attributes_of(model).values() if isinstance(each, ExtractedAttribute))


def copied_of(model: type[DynamoModel]) -> tuple[CopiedAttribute, ...]:
    """The model's copies of other objects' attributes."""
    return tuple(each for each in attributes_of(model).values() if isinstance(each, CopiedAttribute))


@bindings.fact
def copied_from(binding: bindings.ModelBinding) -> tuple[CopiedAttribute, ...]:
    """The copies that other models keep of a model's attributes."""
    model = binding.model._meta.concrete_model
    copies = (copy for holder in all_models() for copy in copied_of(holder))
    return tuple(copy for copy in copies if copy.source.field.model._meta.concrete_model is model)


def counters_of(model: type[DynamoModel]) -> tuple[CounterAttribute, ...]:
    """The model's counters of children."""
    return tuple(each for each in attributes_of(model).values() if isinstance(each, CounterAttribute))


def layout_of(model: type[DynamoModel]) -> ModelLayout:
    """The model's layout with the names that its items have now, as ``declared_layout()`` otherwise."""
    found = bindings.generation.bindings.get(model)
    return bindings.binding_of(model).layout if found is None else found.layout


@cache
def declared_layout(model: type[DynamoModel]) -> ModelLayout:
    """The model's layout as it is declared; raises ``ConfigurationError`` for keys that cannot work."""
    layout = _LayoutBuilder(model).build()
    _MODELS_OF_LAYOUTS[layout] = model
    return layout


def model_of(layout: ModelLayout) -> type[DynamoModel]:
    """The model that has this layout."""
    return _MODELS_OF_LAYOUTS[layout.origin]


bindings.set_declared_layouts(declared_layout)


@bindings.shared
def _layouts_of_table(alias: str) -> tuple[ModelLayout, ...]:
    return tuple(declared_layout(model) for model in _MODELS.values() if model._options.alias == alias)


class _LayoutBuilder:
    def __init__(self, model: type[DynamoModel]) -> None:
        self.model = model
        self.label: str = model._meta.label
        self.attributes = attributes_of(model)

    def build(self) -> ModelLayout:
        former = self.model._options.former
        if former is not None:
            app, _, name = self.label.partition(".")
            raise ConfigurationError(
                f"{self.label} declares Meta.schema_version or Meta.upgrades, and items are no longer upgraded when "
                f"they are read. {former.way_out(app, name)}"
            )
        for name, attribute in self.attributes.items():
            self.resolve(name, attribute.field)
        for copy in copies_of(self.model):
            identities.check_computed(self.model, self.attributes, copy)
        for copied in copied_of(self.model):
            identities.check_copied(self.model, copied)
        options = self.model._options
        soft_delete = DELETED_AT in self.attributes
        sharding = self.sharding(options.shards)
        indexes = tuple(
            AccessKey.of(
                name, key, self.key_template, sharding, options.read_condition(self.model, name, key.condition)
            )
            for name, key in options.index_keys.items()
        )
        return ModelLayout(
            label=self.label,
            item_type=options.item_type,
            alias=options.alias,
            attributes=self.infos(),
            primary=AccessKey.of("primary", options.primary, self.key_template, sharding),
            indexes=indexes,
            soft_delete=soft_delete,
            trash=self.trash(indexes, sharding) if soft_delete else None,
            expires=next((name for name, a in self.attributes.items() if isinstance(a, TTLAttribute)), None),
            neighbours=partial(_layouts_of_table, options.alias),
            sharding=sharding,
            reaches=reaches_of(self.shape, self.attributes),
        )

    def resolve(self, name: str, field: Any) -> None:
        """Refuse a reference that leads to no model whose ``pk`` could be stored."""
        passed: set[Any] = set()
        while field.is_relation:
            target = field.remote_field.model
            if isinstance(target, str):
                raise ConfigurationError(
                    f"{self.label}: {name} refers to {target!r}, which is not a model of an installed app."
                )
            if target in passed:
                labels = ", ".join(sorted(model._meta.label for model in passed))
                raise ConfigurationError(
                    f"{self.label}: {name} refers to {labels}, whose primary keys refer to each other in a circle. "
                    "Give one of them an identifier of its own."
                )
            passed.add(target)
            field = target._meta.pk

    def sharding(self, shards: Shards | None) -> Sharding | None:
        """Return the division of the sharded keys, by a value that an item has and keeps from its creation."""
        options = self.model._options
        sharded = [name for name, key in options.index_keys.items() if key.sharded]
        sharded = ["primary", *sharded] if options.primary.sharded else sharded
        if shards is None:
            if sharded:
                raise ConfigurationError(
                    f"{self.label}: the key {sharded[0]} is sharded, but class Keys does not declare the "
                    f"shards. Declare shards = models.Shards({self.model._identity[0]!r}, at=...) with the "
                    "time when objects were created."
                )
            return None
        if not sharded:
            raise ConfigurationError(
                f"{self.label}.Keys declares shards, but no key has sharded=True. Set sharded=True on a key, "
                "or remove the shards."
            )
        given = [options.primary.sharded, *(key.sharded for key in options.index_keys.values())]
        if any(each not in (False, True) for each in given):
            raise ConfigurationError(f"{self.label}: set sharded=True on a key; class Keys declares the shards.")
        if shards.attribute not in self.model._identity:
            raise ConfigurationError(
                f"{self.label}: shards by {shards.attribute!r}, which the primary key does not name. An object is "
                f"looked for by {', '.join(self.model._identity)}: name one of these."
            )
        at = self.attributes.get(shards.at)
        settled = isinstance(at, TimestampAttribute) and not isinstance(at, TTLAttribute)
        if at is None or not settled or at.null or not (at.immutable or at.settled):
            raise ConfigurationError(
                f"{self.label}: the shards are divided at={shards.at!r}, which has to be a TimestampAttribute that "
                "every object has and keeps: models.TimestampAttribute(auto_now_add=True, immutable=True)."
            )
        kind = self.attributes[shards.attribute].key_kind or ""
        primary = (
            self.key_template(options.primary.partition, names.PARTITION_KEY),
            self.key_template(options.primary.sort, names.SORT_KEY),
        )
        return sharding_of(shards, codec_for(kind), primary)

    def trash(self, indexes: tuple[AccessKey, ...], sharding: Sharding | None) -> AccessKey | None:
        index = self.model._options.trash_index or next((key.index for key in indexes), None)
        if index is None:
            return None
        identity = "#".join(f"{{{name}}}" for name in self.model._identity)
        partition = f"{names.TRASH_PREFIX}#{self.model._options.item_type}"
        sort = self.template(f"{{{DELETED_AT}}}#{identity}")
        return AccessKey(TRASH, index, self.template(partition), sort, sharding=sharding)

    def template(self, source: str) -> Template:
        parsed = Template.parse(source)
        return parsed.bind({part.shown: self.codec(part, source) for part in parsed.parts})

    def key_template(self, source: str, place: str) -> Template:
        """Return the template of a key attribute by the app's own name of it, bound as the table stores it."""
        shape = self.shape
        if shape.is_own:
            check_sort_key(self.label, shape, place, source)
            return self.template(source)
        return shaped_template(self.label, shape, place, source, self.attributes, self.codec)

    @cached_property
    def shape(self) -> Shape:
        """The shape of the model's table, or the app's own if the settings are invalid."""
        try:
            return conf.table_settings(self.model._options.alias).shape
        except ConfigurationError:
            return OWN

    def codec(self, part: KeyPart, source: str) -> Codec:
        if part.path:
            return identities.codec_of(self.model, self.attributes, part, source)
        attribute = self.attributes.get(part.name)
        if attribute is None and part.name.partition("__")[0] in self.attributes:
            raise ConfigurationError(
                f"{self.label}: the key {source!r} names {part.name!r}. Paths are for filters: DynamoDB cannot index "
                "nested values. Also keep the value in a separate attribute, and name that: "
                f'{part.name.rpartition("__")[2]} = models.ExtractedAttribute("{part.name}").'
            )
        if attribute is None:
            what = f"not an attribute of the model. It has {', '.join(self.attributes) or 'none'}."
            for field in (each for each in self.model._meta.local_fields if each.name == part.name):
                what = f"a {type(field).__name__} of Django: declare an attribute of dynamo_single.models instead."
            raise ConfigurationError(f"{self.label}: the key {source!r} names {part.name!r}, which is {what}")
        if isinstance(attribute, CounterAttribute | VersionAttribute):
            raise ConfigurationError(
                f"{self.label}: the key {source!r} names {part.name!r}, which counts without reading or writing the "
                "object, so that no key can follow it."
            )
        if attribute.key_kind is None:
            raise ConfigurationError(
                f"{self.label}: the key {source!r} uses {part.name!r}, a {type(attribute).__name__}. Keys "
                "contain only strings, numbers and datetimes: DynamoDB cannot index a value inside a map, a "
                "list or a set. Store the value in a separate attribute as well, and use "
                f"that{_extracting(part.name, attribute)}."
            )
        return codec_for(attribute.key_kind, part.spec)

    def infos(self) -> dict[str, AttributeInfo]:
        infos = {
            name: AttributeInfo(
                name=name,
                stored=attribute.attr_name,
                type=attribute.attr_type,
                required=self.is_required(attribute),
                serialize=attribute.operand,
                kind=attribute.key_kind or "",
                hides=attribute.hides,
            )
            for name, attribute in self.attributes.items()
        }
        infos[ITEM_TYPE] = AttributeInfo(ITEM_TYPE, names.ITEM_TYPE, "S", True, lambda value: {"S": value})
        return infos

    def is_required(self, attribute: Attribute) -> bool:
        if isinstance(attribute, CanonicalAttribute):
            # It may be another model's, if this model copies it.
            source = attributes_of(attribute.field.model._meta.concrete_model).get(attribute.source)
            return not attribute.may_be_blank and source is not None and self.is_required(source)
        if isinstance(attribute, ExtractedAttribute):
            return not (attribute.null or attribute.output.field_options["blank"])
        if isinstance(attribute, CopiedAttribute):
            return not attribute.reference_field.null and self.is_required(attribute.source)
        return not attribute.null and not self.may_be_empty(attribute)

    def may_be_empty(self, attribute: Attribute) -> bool:
        # A blank=True text may be saved empty; an identifier is made on creation although forms leave it blank.
        in_primary = attribute.name in attribute.field.model._identity
        made = isinstance(attribute, IdAttribute)
        return attribute.attr_type == "S" and bool(attribute.field.blank) and not in_primary and not made


def _extracting(name: str, attribute: Attribute) -> str:
    """Return how to store a nested value in a separate attribute, for messages."""
    return f': models.ExtractedAttribute("{name}__...")' if attribute.document and attribute.attr_type in "ML" else ""


def keys_of(declarations: object) -> dict[str, Key]:
    """The keys of a ``class Keys`` that are on no index, by name."""
    return {} if declarations is None else _declared(declarations, Key)


def index_keys(declarations: object) -> dict[str, IndexKey]:
    """The index keys of a ``class Keys``, by name, in the order of declaration."""
    return _declared(declarations, IndexKey)


def shards_of(declarations: object) -> Shards | None:
    """Return the division of the sharded keys of a ``class Keys``; the last declaration wins."""
    return next(reversed(_declared(declarations, Shards).values()), None)


def _declared(declarations: Any, kind: type[T]) -> dict[str, T]:
    found: dict[str, T] = {}
    for owner in reversed(declarations.__mro__[:-1]):  # without ``object``
        found.update({name: value for name, value in vars(owner).items() if isinstance(value, kind)})
    return found
