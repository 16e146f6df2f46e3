"""The form in which a model's objects become items: everything that does not depend on an object, built once per model.

A form prepares an object's values, computes the difference from the stored item, and returns the new item. It must not
depend on effects, conditions of callers or requests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from msgspec import Struct

from dynamo_single.exceptions import (
    EmptyKeyPart,
    ImmutableAttribute,
    InvalidValue,
    ItemTooLarge,
    MissingValue,
    NotSupported,
    OutdatedKey,
)
from dynamo_single.orm.conditions.matching import normalized_value
from dynamo_single.orm.conditions.terms import Stored
from dynamo_single.orm.items.encode import (
    PLAIN,
    Values,
    computed_key,
    is_key_of,
    is_same,
    item_from,
    key_attributes,
    known_names,
    set_automatic,
    version_mark,
    writer_of,
)
from dynamo_single.orm.items.encodings import Encodings
from dynamo_single.orm.items.readers import absent_value
from dynamo_single.orm.items.version import version_stored
from dynamo_single.orm.requests.actions import Item, key_of
from dynamo_single.orm.requests.updates import Change, Place, as_stored, stored_value_at
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import Attribute, VersionAttribute
from dynamo_single.orm.schema.attributes.operations import is_expression
from dynamo_single.orm.schema.bindings import ModelBinding, fact
from dynamo_single.orm.schema.fields.simple import FileField
from dynamo_single.orm.schema.keys.values import HAS_TO_HAVE_VALUE, item_size, named, shown, words
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout, Twin
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.request import MAX_ITEM_SIZE, NewItem, StoredValue
from dynamo_single.table.shown_keys import key_text

# The dependencies of a write of nested values: pure functions of the item before and after.  This module does not
# depend on models or requests.


class Extraction(Struct, frozen=True):
    """One value: its physical name, and the path of its source in the document."""

    copy: str
    place: Place

    def is_reached_by(self, change: Change) -> bool:
        """Return whether a change affects the path, or a container of it."""
        return self.place.overlaps(change.place)

    def as_read(
        self, before: Item, after: Item, written: Collection[str], put_whole: Collection[str], *, in_key: bool
    ) -> Stored | None:
        """The condition under which the value fits its document after an update; ``None`` for none.

        If only one of the two changes, the other must be unchanged since the read. The same applies to the path of a
        key that contains the value (``in_key``). Two writers of other places of a document agree. ``put_whole`` are the
        documents that overwrite the values of other processes.
        """
        if self.place.name in put_whole or self._is_written(before, after):
            return None if self.copy in written else as_stored(before, self.copy)
        if self.copy not in written and not in_key:
            return None
        old = stored_value_at(before, self.place)
        return self.place.stored("missing") if old is None else self.place.stored("=", old)

    def _is_written(self, before: Item, after: Item) -> bool:
        """Return whether the difference of the two documents writes the path or its container. A container that was
        missing is overwritten even if the path is empty before and after, because another process may have filled it.
        """
        for length in range(len(self.place.path) + 1):
            within = Place(self.place.name, self.place.path[:length])
            old, new = stored_value_at(before, within), stored_value_at(after, within)
            if old is None or new is None:
                return old is not new
            if length == len(self.place.path) or not ("M" in old and "M" in new):
                return normalized_value(old) != normalized_value(new)
        return False


#: How Django copies an object.
_COPY = "For a copy, set _state.adding = True as well"
_KEY = (names.PARTITION_KEY, names.SORT_KEY)


class KeyForm(Struct, frozen=True):
    """One index key: the physical names of its pair, and of its parts other than the identity.

    A ``conditional`` key has a condition, so it can stay unchanged while values of its condition change.
    """

    pair: frozenset[str]
    made_of: frozenset[str]
    conditional: bool = False


class ItemForm(Struct, frozen=True, eq=False):
    """The form of one model's items.

    ``stored`` are the physical names by attribute, ``known`` all that the model writes. ``automatic`` are the fields
    that change with every write, ``fixed`` the attributes that code cannot set. ``followers`` are the attributes
    computed from another, as ``(follower, source)``; ``folded`` the same by physical names, for the folded copies of
    strings, and ``extracted`` for nested values, with their paths. ``depended_on`` are the sources of keys and folded
    copies, and the markers of live items; for extracted values it contains only their paths. ``documents`` are the
    physical names of attributes saved by their difference, ``compared`` those of all other attributes, whose values are
    read to compose a write. Keys have conditions on the documents ``in_conditions``. ``repeatable`` are the attributes
    of which an unchanged value can be written again. ``checked`` are attributes with validation beyond their type.
    ``files`` are the fields whose contents are in a storage, ``writers`` encode prepared values. ``twins`` are
    attributes that are being renamed: they are written whole, and DynamoDB never computes them. Everything derives from
    ``binding``.
    """

    binding: ModelBinding
    model: Any
    alias: str
    attributes: Mapping[str, Attribute]
    stored: Mapping[str, str]
    known: frozenset[str]
    identity: tuple[str, ...]
    automatic: Mapping[str, Any]
    fixed: frozenset[str]
    keys: tuple[KeyForm, ...]
    followers: tuple[tuple[str, str], ...]
    folded: tuple[tuple[str, str], ...]
    extracted: tuple[Extraction, ...]
    always: frozenset[str]
    depended_on: frozenset[str]
    documents: frozenset[str]
    compared: frozenset[str]
    in_conditions: tuple[str, ...]
    repeatable: frozenset[str]
    immutable: frozenset[str]
    checked: tuple[Attribute, ...]
    files: tuple[Any, ...]
    #: The physical name of the version; ``""`` for a model without one.
    version: str
    writers: Mapping[str, Callable[[Any], dict[str, Any]]]
    twins: tuple[Twin, ...] = ()

    @property
    def label(self) -> str:
        """The name of the model in messages."""
        label: str = self.model._meta.label
        return label

    def asks(self, values: Values) -> bool:
        """Return whether the program has set an attribute to a change, such as ``F()``."""
        return any(is_expression(value) for value in values.values() if type(value) not in PLAIN)

    def prepared(
        self,
        values: Values,
        before: Item | None,
        only: Collection[str] | None = None,
        without: Collection[str] = (),
        *,
        encodings: Encodings | None = None,
    ) -> Values:
        """Return an object's values in their stored Python form; raise ``InvalidValue`` for the first invalid value,
        ``MissingValue`` for a missing required one.

        ``only`` names the attributes to include, with their followers; ``without`` those to omit. An attribute that a
        stored item lacked ``before`` may stay missing, because it may be younger than the item. ``encodings`` caches
        encoded values for the further steps of the write.
        """
        encodings = Encodings() if encodings is None else encodings
        if only is not None:
            only = {*only, *(follower for follower, source in self.followers if source in only)}
        if without:
            without = {*without, *(follower for follower, source in self.followers if source in without)}
        found: Values = {}
        for name, attribute in self.attributes.items():
            if name in without or (only is not None and name not in only):
                continue
            try:
                current = attribute.current(values)
                if attribute.document:
                    stored = None if before is None else before.get(self.stored[name])
                    value = encodings.of(attribute, current, stored).value
                else:
                    value = attribute.prepare(current)
                found[name] = value
            except InvalidValue as error:
                raise type(error)(f"{self.label}: {error}") from error
            if value is None and not attribute.null and (before is None or self.stored[name] in before):
                message = f"{self.label}: {name} is missing: {self._remedy(name, before)}."
                raise MissingValue(message, words=words(HAS_TO_HAVE_VALUE, name=attribute.field.verbose_name))
        return found

    def _remedy(self, name: str, before: Item | None) -> str:
        expects = f"set it to {self.attributes[name].expects}"
        if before is None or name not in self.identity:
            return f"{expects}, or declare it with null=True"
        return f"{expects}. {_COPY}"

    def difference(
        self, prepared: Values, held: Values, before: Item, *, named: bool, encodings: Encodings | None = None
    ) -> Values:
        """Return the prepared values that differ from ``held``, the values as read, or from stored documents.

        The default of a missing attribute is shown as its value, and is written only where attributes are ``named``.
        """
        encodings = Encodings() if encodings is None else encodings
        found = {}
        for name, value in prepared.items():
            attribute = self.attributes[name]
            if attribute.document:
                same = self.is_same_document(attribute, value, before, encodings)
            elif type(value) is type(held[name]) and type(value) in PLAIN:
                same = value == held[name]
            else:
                same = self._is_as_stored(name, value, before) or is_same(attribute, value, held[name])
            if not same or (named and value is not None and self.stored[name] not in before):
                found[name] = value
        return found

    def is_same_document(self, attribute: Attribute, value: object, before: Item, encodings: Encodings) -> bool:
        """Return whether a document is unchanged; a missing document is equal to its default."""
        stored = before.get(self.stored[attribute.name])
        if stored is None:
            return is_same(attribute, value, absent_value(attribute))
        if value is None:
            return attribute.attr_type not in stored
        return encodings.of(attribute, value, stored).stored is stored

    def _is_as_stored(self, name: str, value: object, before: Item) -> bool:
        """Return whether a prepared value equals the stored one exactly, so that a semantic comparison is
        unnecessary."""
        stored = before.get(self.stored[name])
        return stored is not None and value is not None and self.writers[name](value) == stored

    def check_whole(self, values: Values) -> None:
        """Raise ``InvalidValue`` for prepared values that break a declaration other than their type."""
        for attribute in self.checked:
            if attribute.name in values:
                try:
                    attribute.check_whole(values[attribute.name])
                except InvalidValue as error:
                    raise type(error)(f"{self.label}: {error} Nothing was written.") from error

    def refuse_fixed(self, changed: Values) -> None:
        """Raise for a change of a fixed attribute: a version, or an attribute whose value comes from the creation."""
        for name in changed if self.fixed & changed.keys() else ():
            if name not in self.fixed:
                continue
            if isinstance(self.attributes[name], VersionAttribute):
                raise InvalidValue(
                    f"{self.label}.{name} counts the writes and cannot be set to {shown(changed[name])}: read the "
                    "object again to write over another's change."
                )
            raise NotSupported(
                f"{self.label}.{name} gets its value at creation and cannot change. Nothing was written."
            )

    def refuse_immutable(self, names: Collection[str], changed: Values, held: Values, before: Item) -> None:
        """Raise for a new value of an immutable attribute; ``names`` are the computed ones."""
        for name in self.immutable.intersection((*changed, *names)):
            # The write may store the default that the app shows for an older item.
            if name in names or self.difference({name: changed[name]}, held, before, named=False):
                raise ImmutableAttribute(label=self.label, field=name)

    def refuse_naming(self, names: Collection[str]) -> None:
        """Raise for an immutable attribute among those that a write names."""
        for name in self.immutable.intersection(names):
            raise ImmutableAttribute(label=self.label, field=name)

    def refuse_move(self, held: Values, changed: Values, before: Item) -> None:
        """Raise for a change of the primary key's attributes."""
        moved = [name for name in self.identity if name in changed]
        if moved and not is_key_of(self.model, {**held, **changed}, key_of(before)):
            makes = "makes" if len(self.identity) == 1 else "make"
            raise NotSupported(
                f"{self.label}: {', '.join(self.identity)} {makes} up the primary key, which save() does not change: "
                f"move({moved[0]}=...) does, with everything else that is set. {_COPY}. "
                "Nothing was written."
            )

    def check_key(self, obj: DynamoModel, held: Values, before: Item) -> None:
        """Raise ``OutdatedKey`` for an item under another key than its values now produce."""
        try:
            key = computed_key(self.model, held)
        except EmptyKeyPart:
            key = None
        if key is None or not is_key_of(self.model, held, key_of(before)):
            alias = self.model._options.alias
            given = "none" if key is None else key_text(alias, key)
            stored = key_text(alias, key_of(before))
            raise OutdatedKey(
                f"{named(obj)} is stored under {stored}, but the model's primary key is now {given}: the "
                "template was changed after the item was written. Nothing was written. Call the object's "
                "move() to store it under the new key, and pass the missing attributes to move()."
            )

    def store_files(self, obj: DynamoModel, only: Collection[str] | None) -> None:
        """Store the files that the program has set since the read, as Django does before a write."""
        for field in self.files:
            if field.attname in obj.__dict__ and (only is None or field.attname in only):
                field.pre_save(obj, False)

    def automatic_values(self, obj: DynamoModel) -> Values:
        """The values of the attributes that follow every write, such as ``updated_at``; the object gets them later."""
        held = {name: obj.__dict__[name] for name in self.automatic if name in obj.__dict__}
        found = {
            name: self.attributes[name].prepare(field.pre_save(obj, False)) for name, field in self.automatic.items()
        }
        obj.__dict__.update(held)
        return found

    def after(self, before: Item, held: Values, changed: Values, encodings: Encodings | None = None) -> NewItem:
        """The item with some attributes changed; the others stay to the letter, missing ones missing.

        A set has several spellings, and a default that the app only shows is not a stored value. It computes every
        index key again, so that a write backfills an index that is younger than the item.
        """
        encodings = Encodings() if encodings is None else encodings
        item: dict[str, Any] = {name: dict(before[name]) for name in _KEY}
        item[names.ITEM_TYPE] = {"S": self.model._options.item_type}
        item |= version_mark(self.binding)
        if self.keys:
            known = {name: self._conditional(name, before, changed, encodings) for name in self.in_conditions}
            item |= key_attributes(self.binding, {**held, **changed}, known)
        for name, stored in self.stored.items():
            if name not in changed:
                if stored in before:
                    item[stored] = before[stored]
            elif changed[name] is not None:
                attribute = self.attributes[name]
                if attribute.document:
                    item[stored] = encodings.of(attribute, changed[name], before.get(stored)).stored
                else:
                    item[stored] = attribute.to_attribute_value(changed[name])
        return item

    def _conditional(self, name: str, before: Item, changed: Values, encodings: Encodings) -> StoredValue | None:
        """The AttributeValue of a document that keys have conditions on; a missing one has its default there."""
        attribute, stored = self.attributes[name], before.get(self.stored[name])
        if name in changed:
            return encodings.of(attribute, changed[name], stored).stored
        found = attribute.encoded(absent_value(attribute)).stored if stored is None else stored
        return None if found is None or "NULL" in found else found

    def as_read(self, written: frozenset[str], after: Item | None) -> set[str]:
        """Return the physical names that must be unchanged since the read, so that the written keys and folded copies
        are correct.

        If a write includes a part of a key but leaves the key unchanged, the stored key must be the same. If the
        existence of the key depends on several attributes, all of them must be unchanged: two processes that write two
        of them would each see too little.
        """
        found = set(self.always)
        moves = names.DELETED_AT in written
        for key in self.keys:
            if moves:
                # Also a key that was not there: the trash takes it away, and a live object needs it.
                found |= key.made_of | key.pair
            elif key.pair & written:
                found |= key.made_of
            elif key.made_of & written:
                found |= key.pair
                if key.conditional or after is None or after.keys().isdisjoint(key.pair):
                    found |= key.made_of
        for copy, source in self.folded:
            # If only one of them changes, the other one has to be what it goes with.
            found |= {copy, source} - written if copy in written or source in written else set()
        return found

    def extractions_as_read(
        self, items: tuple[Item, Item], written: frozenset[str], put_whole: Collection[str]
    ) -> tuple[Stored, ...]:
        """Return the conditions of all extracted values, given the item as read and as it will be."""
        before, after = items
        found = (
            each.as_read(before, after, written, put_whole, in_key=self.writes_key_of(written, each.copy))
            for each in self.extracted
        )
        return tuple(each for each in found if each is not None)

    def writes_key_of(self, written: frozenset[str], stored: str) -> bool:
        """Return whether a write sets an index key with this attribute."""
        return any(stored in key.made_of and key.pair & written for key in self.keys)

    def check_size(self, obj: DynamoModel, item: Item, encodings: Encodings) -> int:
        """Return the bytes of an item; reject an item over DynamoDB's limit."""
        size = encodings.item_size(item) if encodings else item_size(item)
        if size > MAX_ITEM_SIZE:
            raise ItemTooLarge(
                f"{named(obj)} would have {size} bytes; DynamoDB stores at most {MAX_ITEM_SIZE} an item. "
                "Nothing was written. Store large contents elsewhere and keep a reference, or divide them "
                "among several items."
            )
        return size


def _key_form(key: AccessKey, layout: ModelLayout) -> KeyForm:
    stored = (layout.attributes[name].stored for name in key.named_attributes if name not in layout.identity)
    return KeyForm(frozenset(names.key_names(key.index)), frozenset(stored), conditional=key.condition is not None)


@fact
def form_of(binding: ModelBinding) -> ItemForm:
    """The form of a model's items; the models have to be complete."""
    model, layout, index_keys = binding.model, binding.layout, binding.index_keys
    attributes = registry.attributes_of(model)
    stored = {name: layout.attributes[name].stored for name in attributes}
    followers = [(copy.name, copy.source) for copy in registry.copies_of(model)]
    places = {each.name: Place(stored[each.source], each.steps) for each in registry.extracted_of(model)}
    folded = [pair for pair in followers if pair[0] not in places]
    automatic = {f.attname: f for f in model._meta.concrete_fields if getattr(f, "auto_now", False)}
    fixed = frozenset(n for n, each in attributes.items() if isinstance(each, VersionAttribute) or each.settled)
    computed = {name for name, each in attributes.items() if each.computed}
    immutable = frozenset(name for name, each in attributes.items() if each.immutable)
    asked = {name for key in index_keys if key.condition is not None for name in key.condition.attributes}
    return ItemForm(
        binding=binding,
        model=model,
        alias=model._options.alias,
        attributes=attributes,
        stored=stored,
        known=frozenset(known_names(binding)),
        identity=tuple(model._identity),
        automatic=automatic,
        fixed=fixed,
        keys=tuple(_key_form(key, layout) for key in index_keys if key.index),
        followers=(*followers, *((copy.name, copy.reference_field.attname) for copy in registry.copied_of(model))),
        folded=tuple((stored[copy], stored[source]) for copy, source in folded),
        extracted=tuple(Extraction(stored[copy], place) for copy, place in places.items()),
        always=frozenset({names.DELETED_AT} if layout.soft_delete else ()),
        depended_on=frozenset(
            {
                names.DELETED_AT,
                *((names.EXPIRES_AT,) if layout.expires else ()),
                *(stored[name] for key in (layout.primary, *index_keys) for name in key.named_attributes),
                *(stored[source] for _, source in folded),
                *(stored[field.attname] for field in model._meta.concrete_fields if field.is_relation),
                *(twin.used for twin in layout.twins),
            }
        ),
        documents=frozenset(stored[name] for name, each in attributes.items() if each.document),
        compared=frozenset(stored[name] for name, each in attributes.items() if not each.document),
        in_conditions=tuple(name for name, each in attributes.items() if each.document and name in asked),
        repeatable=frozenset(attributes.keys() - automatic.keys() - fixed - immutable - computed - {*model._identity}),
        immutable=immutable,
        checked=tuple(each for each in attributes.values() if each.shape is not None),
        files=tuple(f for f in model._meta.concrete_fields if isinstance(f, FileField)),
        version=version_stored(binding),
        writers={name: writer_of(attribute) for name, attribute in attributes.items()},
        twins=layout.twins,
    )


def item_of(obj: Any) -> NewItem:
    """Return the whole item with its automatic times, for PynamoDB's own writers, without a request."""
    set_automatic(obj, add=obj._state.adding)
    form = form_of(type(obj))
    encodings = Encodings()
    prepared = form.prepared(obj.__dict__, None, encodings=encodings)
    form.check_whole(prepared)
    return item_from(form.binding, prepared, encodings.of_values(prepared))
