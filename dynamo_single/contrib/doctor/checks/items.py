"""Individual items: each has a known type and can be read, and its keys and folded copies match its attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.utils.translation import gettext_noop as _

from dynamo_single.cache import entries
from dynamo_single.conf import table_settings
from dynamo_single.contrib.doctor.findings import Finding, FindingKind, Others, Subject
from dynamo_single.exceptions import EmptyKeyPart, InvalidValue
from dynamo_single.orm.effects import unique_claims
from dynamo_single.orm.items import decode, encode
from dynamo_single.orm.items.encode import stored_name
from dynamo_single.orm.requests.actions import ItemKey, Update, as_read
from dynamo_single.orm.rollout import knowledge, presence, states
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import ExtractedAttribute
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.request import Item, NewItem
from dynamo_single.translated import Sentence, joined, literal, sentence

#: The types of items that do not belong to a model.
OTHER_TYPES = {
    names.CLAIM_ITEM_TYPE,
    names.CHECKPOINT_ITEM_TYPE,
    names.MIGRATION_ITEM_TYPE,
    entries.ENTRY_TYPE,
    entries.PART_TYPE,
    entries.GENERATIONS_TYPE,
    states.STATE_TYPE,
    presence.ITEM_TYPE,
}
#: What every item may have.
_OWN_NAMES = {
    *(names.PARTITION_KEY, names.SORT_KEY, names.ID, names.ITEM_TYPE, names.SCHEMA_VERSION, names.EXPIRES_AT),
    *(names.CREATED_AT, names.UPDATED_AT, names.CREATED_BY, names.VERSION),
    *(names.DELETED_AT, names.DELETED_WITH, names.DELETED_ALONG),
    *(names.COPIES_DUE, names.MOVED_FROM, names.COUNTING),
}


def wanted(subject: Subject, others: Others) -> Iterable[ItemKey]:
    """Return no keys: an item's own keys depend only on the item."""
    return ()


def findings(subject: Subject, others: Others) -> Iterator[Finding]:
    """Yield the errors of an item by itself."""
    if subject.model is None:
        item_type = subject.item.get(names.ITEM_TYPE, {}).get("S")
        # Items of the other programs are in a table that the app does not own.
        if item_type not in OTHER_TYPES and table_settings(subject.alias).owns:
            text = _("Its itemType %(type)s does not belong to an installed model.")
            yield Finding("unknown item", subject.key, sentence(text, type=repr(item_type)))
        return
    try:
        read = decode.values_of(subject.model, subject.item)
        values = read | {copy.name: copy.current(read) for copy in registry.copies_of(subject.model)}
        primary = encode.computed_key(subject.model, values)
        expected = encode.key_attributes(subject.model, values)
        unique_claims.claims_of(subject.model, subject.item)
    except EmptyKeyPart as error:
        # The check of copies writes a missing copy of another object's attribute, with the keys that need it.
        if not any(_is_unfilled(subject, copy) for copy in registry.copied_of(subject.model)):
            yield Finding("unreadable item", subject.key, literal(str(error)))
        return
    except InvalidValue as error:
        yield Finding("unreadable item", subject.key, literal(str(error)))
        return
    if not encode.is_key_of(subject.model, values, subject.key):
        said = sentence(_("Its attributes give %(key)s."), key=f"{primary[0]} / {primary[1]}")
        yield Finding("primary key", subject.key, said)
    if names.ITEM_TYPE not in subject.item:
        yield _without_type(subject, values, expected)
        return
    yield from _copies(subject, values)
    for index in _indexes(subject):
        yield from _index(subject, index, expected)
    yield from _left_over(subject)


def _left_over(subject: Subject) -> Iterator[Finding]:
    """Yield what no code of today writes into the items of a model whose form a migration has recorded.

    There is no repair: the last value of a process that was late may be there, or that of another program.
    """
    form = knowledge.recorded_form(subject.model)
    if form is None:
        return
    known = {*encode.known_names(subject.model), *form.attributes, *form.kept, *form.required, *_OWN_NAMES}
    known.update(form.renames)
    known.update(each.old for each in form.renames.values() if each.phase < 3)
    checked = {name for index in _indexes(subject) for name in names.key_names(index)}
    for name in sorted(subject.item.keys() - known - checked):
        if name.startswith(names.REFERRED_PREFIX):
            continue
        renamed = next((new for new, rename in form.renames.items() if rename.old == name), None)
        text = _("It has %(name)s, which the current code does not write.")
        if renamed is not None:
            text = _("It has %(name)s, which the current code does not write: %(new)s replaces it.")
        yield Finding("attribute left over", subject.key, sentence(text, name=name, new=renamed or ""))


def _without_type(subject: Subject, values: dict[str, object], expected: NewItem) -> Finding:
    """Return the finding for a record of another program. The repair writes its type and all dependent attributes."""
    copies = registry.copies_of(subject.model)
    held = {copy.attr_name: (copy, values[copy.name]) for copy in copies}
    made = {name: copy.to_attribute_value(value) for name, (copy, value) in held.items() if value is not None}
    change = {names.ITEM_TYPE: {"S": subject.model._options.item_type}, **made, **expected}
    removed = tuple(name for name in held if name in subject.item and name not in made)
    deciding = {names.ITEM_TYPE, names.DELETED_AT, *(stored_name(subject.model, copy.source) for copy in copies)}
    deciding = deciding.union(
        *(_source_names(subject.model, key.index) for key in registry.layout_of(subject.model).indexes)
    )
    repair = Update(subject.key, set=change, remove=removed, condition=as_read(subject.item, deciding))
    text = _("It does not have an itemType, so lists do not contain it. By its id, it is a record of %(label)s.")
    return Finding("record without type", subject.key, sentence(text, label=subject.model._meta.label), (repair,))


def _is_unfilled(subject: Subject, copy: Any) -> bool:
    return copy.reference_field.attribute.attr_name in subject.item and copy.attr_name not in subject.item


def _copies(subject: Subject, values: dict[str, object]) -> Iterator[Finding]:
    for copy in registry.copies_of(subject.model):
        text = values[copy.name]
        expected = None if text is None else copy.to_attribute_value(text)
        if expected == subject.item.get(copy.attr_name):
            continue
        condition = as_read(subject.item, (stored_name(subject.model, copy.source), copy.attr_name))
        change = {} if expected is None else {copy.attr_name: expected}
        removed = (copy.attr_name,) if expected is None else ()
        repair = Update(subject.key, set=change, remove=removed, condition=condition)
        kind: FindingKind = "extracted value" if isinstance(copy, ExtractedAttribute) else "canonical copy"
        said = sentence(
            _("%(copy)s is not %(value)s, the value computed from %(source)s."),
            copy=copy.name,
            value=repr(text),
            source=copy.source,
        )
        yield Finding(kind, subject.key, said, (repair,))


def _indexes(subject: Subject) -> tuple[str, ...]:
    layout = registry.layout_of(subject.model)
    own = (key.index for key in layout.index_keys if key.index)
    return tuple(dict.fromkeys((*table_settings(subject.alias).indexes, *own)))


def _index(subject: Subject, index: str, expected: NewItem) -> Iterator[Finding]:
    pair = names.key_names(index)
    stored = {name: subject.item[name] for name in pair if name in subject.item}
    right = {name: expected[name] for name in pair if name in expected}
    if stored == right:
        return
    change = {name: value for name, value in right.items() if stored.get(name) != value}
    removed = tuple(name for name in stored if name not in right)
    condition = as_read(subject.item, (*pair, *_source_names(subject.model, index), names.DELETED_AT))
    repair = Update(subject.key, set=change, remove=removed, condition=condition)
    yield Finding(_kind(subject, stored), subject.key, _text(index, pair, stored, right), (repair,))


def _kind(subject: Subject, stored: dict[str, Any]) -> FindingKind:
    if len(stored) == 1:
        return "half index key"
    in_trash = names.DELETED_AT in subject.item
    partition: dict[str, str] = next(iter(stored.values()), {})
    if in_trash and stored and not partition.get("S", "").startswith(f"{names.TRASH_PREFIX}#"):
        return "live key in the trash"
    return "index key"


def _text(index: str, pair: tuple[str, str], stored: Item, right: Item) -> Sentence:
    return sentence(
        _("On %(index)s it has %(stored)s, and its attributes give %(right)s."),
        index=index,
        stored=_key_text(pair, stored),
        right=_key_text(pair, right),
    )


def _key_text(pair: tuple[str, str], found: Item) -> Sentence:
    if not found:
        return sentence(_("no key"))
    return joined(
        [literal(found[name].get("S", "?")) if name in found else sentence(_("nothing")) for name in pair], " / "
    )


def _source_names(model: type[DynamoModel], index: str | None) -> set[str]:
    """Return the physical names of the attributes that the keys on an index depend on, or of a copy's source."""
    layout = registry.layout_of(model)
    sources = {copy.name: copy.source for copy in registry.copies_of(model)}
    variables = {name for key in layout.index_keys if key.index == index for name in key.named_attributes}
    return {layout.attributes[sources.get(name, name)].stored for name in variables - set(layout.identity)}
