"""The stored form of a model at one time: its keys, attributes and unique rules, independent of the class.

All objects here are values or pure functions. This module does not depend on operations or on the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from msgspec.structs import replace as struct_replace

from dynamo_single.conf import table_settings
from dynamo_single.evolution.stored_attributes import MigrationValue, StoredAttribute, UniqueRule, stored_attributes_of
from dynamo_single.exceptions import ConfigurationError, EmptyKeyPart, InvalidValue
from dynamo_single.orm.conditions import lowering
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.conditions.wording import condition_of, rename_in_plain
from dynamo_single.orm.items.unique_rules import ClaimRule, rules_of
from dynamo_single.orm.requests.actions import Item, ItemKey
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fingerprints import key_fingerprint
from dynamo_single.orm.schema.keys.reference_parts import codec_of_member
from dynamo_single.orm.schema.keys.shards import Shards, place_of, seconds, shard_suffix, split_partition
from dynamo_single.orm.schema.keys.stored_keys import shaped_template
from dynamo_single.orm.schema.keys.template import (
    Codec,
    IndexKey,
    Key,
    KeyPart,
    NoIdentity,
    Template,
    codec_for,
    sharding_of,
)
from dynamo_single.orm.schema.layout import AccessKey, IndexCondition
from dynamo_single.orm.schema.upgrades import FIRST
from dynamo_single.table import names
from dynamo_single.table.request import PARTITION_KEY_LIMIT, SORT_KEY_LIMIT, NewItem
from dynamo_single.table.table import get_table

Values = dict[str, Any]
AnyKey = TypeVar("AnyKey", Key, IndexKey)


@dataclass(frozen=True)
class Snapshot(MigrationValue):
    """One model's items as they are stored at one time. Attributes and keys have their Python names."""

    item_type: str
    primary: Key
    attributes: Mapping[str, StoredAttribute]
    keys: Mapping[str, IndexKey] = field(default_factory=dict)
    unique: tuple[UniqueRule, ...] = ()
    #: The index that serves the trash, or ``None``.
    trash_index: str | None = None
    #: The table, by its alias in ``settings.DYNAMO_SINGLE``.
    alias: str = "default"
    #: The latest schema version of stored items and the earliest one, which an earlier release distinguished.
    schema_version: int = FIRST
    oldest_version: int = FIRST
    #: The physical names that differ between these two versions.
    pending: tuple[str, ...] = ()
    #: The physical names that attributes had before they were renamed: code of before knows values by them.
    former: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, model: Any) -> Snapshot:
        """Return the snapshot of the current model; raise ``ConfigurationError`` for an invalid declaration."""
        model = model._meta.concrete_model
        options, layout = model._options, registry.layout_of(model)
        return cls(
            options.item_type,
            _with_shards(options.primary, options.shards),
            stored_attributes_of(model),
            keys={key.name: _stored_key(options.index_keys[key.name], key, options.shards) for key in layout.indexes},
            unique=tuple(map(UniqueRule.of, rules_of(model))),
            trash_index=None if layout.trash is None else layout.trash.index,
            alias=options.alias,
        )

    @property
    def soft_delete(self) -> bool:
        """Whether deleted objects go to the trash."""
        return registry.DELETED_AT in self.attributes

    @property
    def is_sharded(self) -> bool:
        """Whether a key of the model or of its trash is divided into shards."""
        return any(key.sharding is not None for key in self.access_keys.values())

    @cached_property
    def access_keys(self) -> dict[str, AccessKey]:
        """The keys with codecs, by name: ``primary``, the keys on indexes, and ``trash``."""
        found = {"primary": self._access_key("primary", self.primary)}
        found |= {name: self._access_key(name, key) for name, key in self.keys.items()}
        if self.trash_index is not None and self.soft_delete:
            identity = "#".join(f"{{{name}}}" for name in found["primary"].variables)
            given = [self.primary.sharded, *(key.sharded for key in self.keys.values())]
            shards = next((each for each in given if each), False)
            trash = Key(f"{names.TRASH_PREFIX}#{self.item_type}", f"{{{registry.DELETED_AT}}}#{identity}", shards)
            found[registry.TRASH] = struct_replace(self._access_key(registry.TRASH, trash), index=self.trash_index)
        return found

    @property
    def identity(self) -> tuple[str, ...]:
        """The attributes of the primary key."""
        return self.access_keys["primary"].variables

    def values_of(self, item: Item) -> Values:
        """Return the Python values of a stored item by attribute; raise ``InvalidValue`` for a wrong type."""
        return {name: each.value(item.get(each.stored)) for name, each in self.attributes.items()}

    def primary_key(self, values: Mapping[str, object], near: ItemKey | None = None) -> ItemKey:
        """Return the primary key of these values; of several, the key in the same shard as ``near``."""
        found = self.primary_keys(values)
        place = None if near is None else split_partition(near[0])[1]
        return next((each for each in found if split_partition(each[0])[1] == place), found[0])

    def primary_keys(self, values: Mapping[str, object]) -> tuple[ItemKey, ...]:
        """Return the possible primary keys of these values, a new item's key first: see ``Schedule.folds()``."""
        key = self.access_keys["primary"]
        return tuple(self._rendered(key, values, ending) for ending in self._endings(key, values))

    def index_key(self, name: str, values: Mapping[str, object]) -> ItemKey | None:
        """Return the key on an index, or ``None`` for an item that is not in the index.

        Raises ``EmptyKeyPart`` if a required attribute of the key is empty.
        """
        key = self.access_keys[name]
        if key.condition is not None and not self._meets(key.condition, values):
            return None
        for variable in key.required_variables:
            if values.get(variable) is None or values[variable] == "":
                if self.attributes[variable].required:
                    raise EmptyKeyPart(f"{self.item_type}: {variable} is empty, and the key {name} needs it.")
                return None
        return self._rendered(key, values, self._endings(key, values)[0])

    def _meets(self, condition: IndexCondition, values: Mapping[str, object]) -> bool:
        named = {name: self.attributes[name] for name in condition.attributes}
        found = {each.stored: each.stored_value(values.get(name)) for name, each in named.items()}
        item: Any = {name: value for name, value in found.items() if value is not None}
        return matches(lowering.with_attribute_names(condition, (each.stored for each in named.values())), item)

    def index_names(self, name: str) -> tuple[str, str]:
        """Return the physical names of the partition and sort key of a key's index."""
        return names.key_names(self.access_keys[name].index)

    def index_attributes(self, values: Mapping[str, object]) -> NewItem:
        """Return all index keys of an item with these values, which is live or in the trash."""
        live = values.get(registry.DELETED_AT) is None
        found: NewItem = {}
        for name in self.keys if live else (registry.TRASH,) if registry.TRASH in self.access_keys else ():
            texts = self.index_key(name, values)
            if texts is not None:
                found |= {each: {"S": text} for each, text in zip(self.index_names(name), texts, strict=True)}
        return found

    def claims(self, item: Item) -> dict[ItemKey, UniqueRule]:
        """Return the claims that a stored item must hold; raise ``InvalidValue`` for a value that fits no key."""
        return {key: rule for rule in self.unique for key in self.claim_rule(rule).claimed(item)}

    def claim_rule(self, rule: UniqueRule) -> ClaimRule:
        """Return how the items claim the values of a unique rule."""
        made = tuple(self.attributes[name].attribute(name) for name in rule.attributes)
        for each in made:
            each.canonical = each.name in rule.canonical
        condition = EVERYTHING if rule.condition is None else condition_of(rule.condition)
        members = self.attributes[rule.members].attribute(rule.members) if rule.members else None
        return ClaimRule(self.alias, self.item_type, made, rule.name, condition, members)

    def key_fingerprint(self, name: str) -> str:
        """Return the fingerprint of a key: ``primary``, the name of a key on an index, or ``trash``."""
        return key_fingerprint(self.access_keys[name], {name: each.stored for name, each in self.attributes.items()})

    def attribute_fingerprint(self, name: str) -> str:
        """Return the fingerprint of an attribute."""
        each = self.attributes[name]
        follows = f"count({each.counted})" if each.counted else ""
        if each.source:
            follows = each.how(self.attributes[each.source].stored)
        if each.copied:
            reference, _dot, attribute = each.copied.partition(".")
            follows = f"copy({self.attributes[reference].stored}.{attribute})"
        return each.text(follows)

    def _access_key(self, name: str, key: Key | IndexKey) -> AccessKey:
        shards, sharding = key.sharded, None
        if isinstance(shards, Shards):
            codec = codec_for(self._key_kind(shards.attribute, key.partition))
            primary = self._template(self.primary.partition), self._template(self.primary.sort)
            sharding = sharding_of(shards, codec, primary)
        condition = None
        if isinstance(key, IndexKey) and key.condition is not None:
            condition = self._condition(name, key.condition)
        return AccessKey.of(name, key, self._key_template, sharding, condition)

    def _condition(self, name: str, given: object) -> IndexCondition:
        if not isinstance(given, tuple):
            raise ConfigurationError(
                f"{self.item_type}: the condition of the key {name} is {given!r}, and a migration has tuples: let "
                "manage.py makemigrations write it."
            )
        found = lowering.index_condition_of_plain(given)
        for each in found.attributes:
            if each not in self.attributes:
                raise ConfigurationError(
                    f"{self.item_type}: the condition of the key {name} names {each!r}, which is not an attribute in "
                    f"the migrations. They have {', '.join(self.attributes)}."
                )
        return found

    def _endings(self, key: AccessKey, values: Mapping[str, object]) -> tuple[str, ...]:
        """Return the shard suffixes that a key may end in. May read the table's schedule with a GetItem."""
        sharding = key.sharding
        if sharding is None:
            return ("",)
        at: Any = values.get(sharding.at)
        if at is None or values.get(sharding.attribute) is None:
            raise EmptyKeyPart(f"{self.item_type}: {sharding.at} is missing, and decides about the shard.")
        schedule = knowledge.recorded_schedule(get_table(self.alias), self.item_type)
        entry = schedule.entry(seconds(at))
        texts = (sharding.text(values[sharding.attribute], fold) for fold in schedule.folds(entry))
        return tuple(dict.fromkeys(shard_suffix(place_of(text, entry.shards)) for text in texts))

    def _rendered(self, key: AccessKey, values: Mapping[str, object], ending: str) -> ItemKey:
        """Return the strings of a key with a shard suffix."""
        try:
            partition = key.partition.render(values, limit=PARTITION_KEY_LIMIT - len(ending)) + ending
            return partition, key.sort.render(values, limit=SORT_KEY_LIMIT)
        except NoIdentity as error:
            raise InvalidValue(f"{self.item_type}: {error}") from error

    def _key_template(self, source: str, place: str) -> Template:
        """Return the template of a key attribute by the app's own name of it, bound as the table stores it."""
        shape = table_settings(self.alias).shape
        if shape.is_own:
            return self._template(source)
        attributes = {name: each.attribute(name) for name, each in self.attributes.items()}
        return shaped_template(self.item_type, shape, place, source, attributes, self._codec)

    def _template(self, source: str) -> Template:
        parsed = Template.parse(source)
        return parsed.bind({part.shown: self._codec(part, source) for part in parsed.parts})

    def _codec(self, part: KeyPart, source: str) -> Codec:
        kind = self._key_kind(part.name, source)
        if part.path:
            return codec_of_member(part, part.name, self.attributes[part.name].identity, source)
        return codec_for(kind, part.spec)

    def _key_kind(self, name: str, source: str) -> str:
        if name not in self.attributes:
            raise ConfigurationError(
                f"{self.item_type}: the key {source!r} names {name!r}, which is not an attribute in the migrations. "
                f"They have {', '.join(self.attributes)}."
            )
        return str(self.attributes[name].attribute(name).key_kind)


def _with_shards(key: AnyKey, shards: Shards | None) -> AnyKey:
    """Return a declared key with the shard options on which its strings depend."""
    return struct_replace(key, sharded=shards) if key.sharded and shards is not None else key


def with_attribute_renamed(snapshot: Snapshot, old: str, new: str, stored: str | None = None) -> Snapshot:
    """Return the snapshot with an attribute renamed; ``stored`` also changes its physical name.

    Keys, rules and folded copies that name the attribute change with it.
    """
    before = snapshot.attributes[old]
    after = before if stored is None else replace(before, stored=stored)
    attributes = {new if name == old else name: each for name, each in snapshot.attributes.items()}
    attributes[new] = after
    return replace(
        snapshot,
        attributes={name: _with_renamed_source(each, old, new) for name, each in attributes.items()},
        primary=_key_renamed(snapshot.primary, old, new),
        keys={name: _key_renamed(key, old, new) for name, key in snapshot.keys.items()},
        unique=tuple(_rule_renamed(rule, (old, new), (before.stored, after.stored)) for rule in snapshot.unique),
        former=(*snapshot.former, *({before.stored} - {after.stored})),
    )


def _stored_key(declared: IndexKey, key: AccessKey, shards: Shards | None) -> IndexKey:
    """Return a declared index key as a migration stores it, with its shards and its condition as tuples."""
    condition = key.condition
    plain = None if condition is None else lowering.as_plain(condition)
    return struct_replace(_with_shards(declared, shards), condition=plain)


def _key_renamed(key: AnyKey, old: str, new: str) -> AnyKey:
    shards = key.sharded
    if isinstance(shards, Shards):
        name, at = (new if each == old else each for each in (shards.attribute, shards.at))
        shards = Shards(name, at)
    partition, sort = _renamed_template(key.partition, old, new), _renamed_template(key.sort, old, new)
    changed = struct_replace(key, partition=partition, sort=sort, sharded=shards)
    if isinstance(changed, IndexKey) and isinstance(changed.condition, tuple):
        changed = struct_replace(changed, condition=rename_in_plain(changed.condition, old, new))
    return changed


def _with_renamed_source(attribute: StoredAttribute, old: str, new: str) -> StoredAttribute:
    reference, dot, name = attribute.copied.partition(".")
    if attribute.source != old and reference != old:
        return attribute
    source = new if attribute.source == old else attribute.source
    return replace(attribute, source=source, copied=f"{new}{dot}{name}" if reference == old else attribute.copied)


def _rule_renamed(rule: UniqueRule, python: tuple[str, str], physical: tuple[str, str]) -> UniqueRule:
    def follow(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(python[1] if name == python[0] else name for name in names)

    condition = None if rule.condition is None else rename_in_plain(rule.condition, *physical)
    attributes, canonical, (members,) = map(follow, (rule.attributes, rule.canonical, (rule.members,)))
    return replace(rule, attributes=attributes, canonical=canonical, condition=condition, members=members)


def _renamed_template(source: str, old: str, new: str) -> str:
    """Return a template with one attribute renamed. Its literals stay, including escaped braces."""
    parsed = Template.parse(source)
    text = ""
    for part in parsed.parts:
        name = (struct_replace(part, name=new) if part.name == old else part).shown
        text += _literal(part.literal) + f"{{{name}{':' if part.spec else ''}{part.spec}}}"
    return text + _literal(parsed.tail)


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
