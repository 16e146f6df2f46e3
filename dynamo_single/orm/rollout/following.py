"""Derive what code of now writes and reads from the form that a table records for a model's items.

The table's state is the schema, and old and new code both follow it. Code that cannot follow a form raises an error
with the migration's name. This module does not send requests or depend on how the table is read.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from dynamo_single.exceptions import FormNotApplied
from dynamo_single.orm.rollout.own_migrations import has_migration
from dynamo_single.orm.rollout.states import ABSENT, PUBLIC, KeyTemplates, Rename, StoredForm, TableState
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import Attribute
from dynamo_single.orm.schema.bindings import Rollout, layout_in_use
from dynamo_single.orm.schema.fingerprints import attribute_fingerprint, key_fingerprints
from dynamo_single.orm.schema.identities import codec_of
from dynamo_single.orm.schema.keys.template import Codec, KeyPart, Template, codec_for
from dynamo_single.orm.schema.layout import AccessKey, IndexCondition, ModelLayout, Twin
from dynamo_single.orm.schema.references import count_name, references
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.schema.upgrades import operation_text
from dynamo_single.table import names

#: The index of a key, and whether it is the trash's key. An item has one key at each position.
Place = tuple[str | None, bool]

_TRASH = f"{names.TRASH_PREFIX}#"


def form_in(state: TableState, layout: ModelLayout) -> StoredForm | None:
    """Return the form of a model's items, or ``None`` if the table records none.

    Raises ``FormNotApplied`` if the table records the model under another type of items, or the type under another
    model.
    """
    found, label = state.forms.get(layout.item_type), layout.label.lower()
    if found is not None:
        if label not in (found.label, *found.labels):
            raise not_applied(layout, f"the table has the items of {found.label!r} under its itemType")
        return found
    for item_type, form in state.forms.items():
        if label in (form.label, *form.labels):
            what = f"its items have the itemType {item_type!r} instead of {layout.item_type!r}"
            raise not_applied(layout, what, _changed_by(form, "itemType"))
    _refuse_unknown(state, layout)
    return None


def _refuse_unknown(state: TableState, layout: ModelLayout) -> None:
    """Raise for a model without items if the table has items of a model of its app that this code does not have.

    Its items would disappear for this model, because the other may be its former name.
    """
    app_label = layout.label.partition(".")[0]
    known = {(model._options.alias, model._options.item_type) for model in registry.all_models()}
    for item_type, form in state.forms.items():
        if form.label.partition(".")[0] == app_label and (layout.alias, item_type) not in known:
            raise not_applied(layout, f"no migration has added it, and this code has no model for {item_type!r} items")


def follow(layout: ModelLayout, form: StoredForm, rules: Mapping[str, str], known: tuple[Twin, ...]) -> Rollout | None:
    """Return how a model's items differ from its declaration, or ``None`` if they do not.

    ``rules`` are the fingerprints of the model's unique rules, each with its name for messages. ``known`` are the pairs
    of names that this process has used before: objects that it has read under them may still be written. Raises
    ``FormNotApplied`` if the code cannot follow the form.
    """
    _refuse_paused(layout, form)
    refuse_older_items(layout, form)
    twins = twins_of(layout, form, known)
    used = layout_in_use(layout, twins)
    _check(layout, used, form, rules)
    keys = _keys_to_write(used, form)
    own = key_fingerprints(layout)
    hidden = frozenset(key.name for key in layout.index_keys if form.key(own[key.name]) != PUBLIC)
    unfilled = frozenset(name for name, info in used.attributes.items() if info.stored in form.unfilled)
    unclaimed = frozenset(each for each in rules if form.rules.get(form.canonical(each)) != PUBLIC)
    written = None if keys == layout.index_keys else keys
    unwritten = frozenset(each for each in rules if form.rules.get(form.canonical(each)) == ABSENT)
    made = Rollout(twins, written, hidden, unfilled, unclaimed, unwritten, form.version)
    return None if made == Rollout() else made


def _refuse_paused(layout: ModelLayout, form: StoredForm) -> None:
    if form.paused:
        raise FormNotApplied(
            f"Cannot use {layout.label} while {form.paused} converts its items. Nothing was read or written. Retry "
            "after manage.py migrate has finished. If the command was stopped, run it again."
        )


def refuse_older_items(layout: ModelLayout, form: StoredForm) -> None:
    """Raise if items may be of an earlier schema version, which an earlier release upgraded when it read them."""
    if form.raised_to > form.version:
        name = layout.label.rpartition(".")[2]
        raise FormNotApplied(
            f"The items of {layout.label} may be of schema versions {form.version} to {form.raised_to}, and are no "
            "longer upgraded when they are read. Nothing was read or written. Upgrade them in a migration with "
            f"{operation_text(name, form.raised_to)}; run migrate."
        )


def _check(layout: ModelLayout, used: ModelLayout, form: StoredForm, rules: Mapping[str, str]) -> None:
    """Raise if the items are stored otherwise than the model reads and writes them."""
    primary = key_fingerprints(layout)["primary"]
    if form.canonical(primary) != form.canonical(form.primary):
        what = f"its items have the key {form.primary!r} instead of {primary!r}"
        raise not_applied(layout, what, _changed_by(form, "primary"))
    for name, attribute in registry.attributes_of(registry.model_of(layout)).items():
        stored, written = used.attributes[name].stored, attribute_fingerprint(attribute, layout)
        found = form.attributes.get(stored)
        if found is None:
            what = f"it stores {name} as {stored!r}, which its items do not have"
            raise not_applied(layout, what, _changed_by(form, stored))
        if form.canonical(found) != form.canonical(written):
            what = f"it stores {name} as {written!r}, and its items have {found!r}"
            raise not_applied(layout, what, _changed_by(form, stored))
    own = {info.stored for each in (used, layout) for info in each.attributes.values()}
    fields = (each for each in references(registry.model_of(layout)) if each.attribute.checked)
    _check_parts(layout, own | {count_name(each) for each in fields}, form)
    declared = {form.canonical(each) for each in rules}
    for each in {text for text, facet in form.rules.items() if facet != ABSENT} - declared:
        what = f"its items hold claims of the unique rule {each!r}, which it does not have"
        raise not_applied(layout, what, _changed_by(form, each))
    for each, name in rules.items():
        if form.canonical(each) not in form.rules:
            what = f"its items hold no claims that make {name} unique"
            raise not_applied(layout, what, _changed_by(form, form.canonical(each)))


def _check_parts(layout: ModelLayout, own: set[str], form: StoredForm) -> None:
    """Raise if the code lacks a part of the items that all code has to write."""
    for part, migration in form.required.items():
        if part not in own and not has_migration(_known_name(form, migration)):
            raise FormNotApplied(
                f"Cannot use {layout.label}: this code does not have {migration}, which is applied to the items, and "
                f"would write items without {part!r}. Nothing was read or written. Deploy the code that has this "
                "migration."
            )
    for part in form.kept:
        if part not in own:
            what = f"other code reads {part!r} of its items, which it would leave wrong"
            raise not_applied(layout, what, _changed_by(form, part))


def _known_name(form: StoredForm, migration: str) -> str:
    """Return the name of a migration in this code, which may have it squashed. Return the given name by default."""
    return next((name for name in form.names_of(migration) if has_migration(name)), migration)


def _changed_by(form: StoredForm, part: str) -> str | None:
    migration = form.changed.get(part)
    return None if migration is None else _known_name(form, migration)


def not_applied(layout: ModelLayout, what: str, migration: str | None = None) -> FormNotApplied:
    """Return the error for a model whose items are stored otherwise; ``migration`` has changed that last, if known."""
    way = (
        "Apply the migrations of this code (manage.py migrate), or create the missing migration (manage.py "
        "makemigrations)."
    )
    if migration is not None and not has_migration(migration):
        way = f"This code does not have {migration}: deploy the code that has this migration."
    elif migration is not None:
        way = f"{migration} is not fully applied, or was reverted: run manage.py migrate."
    return FormNotApplied(f"{layout.label} does not match its items: {what}. Nothing was read or written. {way}")


# Names: while an attribute is being renamed its items have the old name, both, or the new name.


def twins_of(layout: ModelLayout, form: StoredForm, known: tuple[Twin, ...] = ()) -> tuple[Twin, ...]:
    """Return the attributes with another physical name in the items, or with two."""
    return tuple(twin for info in layout.attributes.values() for twin in _twins(info.stored, form, known))


def _twins(own: str, form: StoredForm, known: tuple[Twin, ...]) -> tuple[Twin, ...]:
    used = name_in_use(own, form.renames)
    both = next((new for new, each in form.renames.items() if each.is_double and used in (new, each.old)), None)
    if both is not None:
        old = form.renames[both].old
        pair = Twin(used, old if used == both else both, used == old)
        # Code with an earlier or later name than these two has neither attribute.
        return (pair,) if own in (used, pair.other) else (pair, _own_twin(used, own, form))
    if used != own:
        return (_own_twin(used, own, form),)
    # Objects that were read under the other name may be written still.
    before = next((twin for twin in known if own in (twin.used, twin.other)), None)
    if before is None:
        return ()
    return (Twin(own, before.other if before.used == own else before.used, is_kept=False),)


def _own_twin(used: str, own: str, form: StoredForm) -> Twin:
    return Twin(used, own, is_before=form.renames.get(own) is not None, is_kept=False)


def name_in_use(name: str, renames: Mapping[str, Rename]) -> str:
    """Return the physical name that is read for an attribute that code stores under a name."""
    seen = {name}
    while True:
        rename = renames.get(name)
        found = rename.old if rename is not None and not rename.is_new_read else None
        if found is None:
            found = next((new for new, each in renames.items() if each.old == name and each.is_new_read), None)
        if found is None or found in seen:
            return name
        seen.add(found)
        name = found


def is_served(model: type[DynamoModel], attribute: Attribute) -> bool:
    """Return whether code can write both names of an attribute: claims and other items depend on one name only."""
    field, meta, layout = attribute.field, model._meta, registry.declared_layout(model)
    if layout.sharding is not None and attribute.name in (layout.sharding.attribute, layout.sharding.at):
        return False
    constrained = {name for fields in meta.unique_together for name in fields}
    for constraint in meta.constraints:
        constrained.update(getattr(constraint, "fields", ()))
        if getattr(constraint, "condition", None) is not None:
            return False
    return not (
        attribute.unique
        or field.is_relation
        or attribute.computed
        or not {field.name, field.attname}.isdisjoint((*constrained, *model._identity, *model.derived_from))
        or any(copy.source is attribute for copy in registry.copied_from(model))
    )


# Keys: items have the keys that the table records, whichever of them a model declares.


def is_trash(key: AccessKey) -> bool:
    """Return whether a key is that of items in the trash."""
    return key.partition.source.startswith(_TRASH)


def place_of(key: AccessKey | KeyTemplates) -> Place:
    """Return the position of a key in an item."""
    partition = key.partition if isinstance(key.partition, str) else key.partition.source
    return key.index, partition.startswith(_TRASH)


def _keys_to_write(used: ModelLayout, form: StoredForm) -> tuple[AccessKey, ...]:
    declared = registry.declared_layout(registry.model_of(used))
    own = {form.canonical(text): name for name, text in key_fingerprints(declared).items()}
    kept = tuple(key for key in used.index_keys if form.key(key_fingerprints(declared)[key.name]) is not None)
    foreign = sorted(text for text in form.keys if form.canonical(text) not in own)
    return (*kept, *(_made(used, form, text) for text in foreign))


def _made(layout: ModelLayout, form: StoredForm, text: str) -> AccessKey:
    templated = form.templates.get(text)
    python = {info.stored: name for name, info in layout.attributes.items()}
    stored = {} if templated is None else {n: name_in_use(each, form.renames) for n, each in templated.stored.items()}
    lacking = sorted(set(stored.values()) - python.keys())
    divided = templated is not None and templated.sharded and layout.sharding is None
    if templated is None or lacking or divided:
        why = f"{layout.label} does not store {', '.join(map(repr, lacking))}"
        why = f"{layout.label} has no shards" if divided and not lacking else why
        why = why if lacking or divided else "the table does not record how to write it"
        migration = _changed_by(form, lacking[0]) if lacking else None
        raise not_applied(layout, f"its items have the key {text!r}, but {why}", migration)
    renamed = {variable: python[each] for variable, each in stored.items()}
    partition, sort = (_bound(layout, source, renamed) for source in (templated.partition, templated.sort))
    conditioned = tuple(renamed[variable] for variable in templated.conditioned)
    return AccessKey(
        f"key of before on {templated.index}",
        templated.index,
        partition,
        sort,
        sharding=layout.sharding if templated.sharded else None,
        make_condition=IndexCondition(templated.condition, conditioned) if templated.condition else None,
    )


def _bound(layout: ModelLayout, source: str, renamed: Mapping[str, str]) -> Template:
    parsed = Template.parse(source)
    parts = tuple(replace(part, name=renamed[part.name]) for part in parsed.parts)
    return Template(source, parts, parsed.tail).bind({part.shown: _codec(layout, part, source) for part in parts})


def _codec(layout: ModelLayout, part: KeyPart, source: str) -> Codec:
    if part.path:
        model = registry.model_of(layout)
        return codec_of(model, registry.attributes_of(model), part, source)
    return codec_for(layout.attributes[part.name].kind, part.spec)
