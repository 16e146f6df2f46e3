"""Describe the form of a model's items in each phase of a change, as the table's state records it.

A change is the difference of two snapshots. This module is pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from dataclasses import replace as dataclass_replace
from typing import Any

from msgspec.structs import replace

from dynamo_single.evolution.phases import (
    ADD_NUMBER,
    ADD_UNIQUE,
    ADD_VALUE,
    PAUSE,
    REMOVE_DERIVED,
    REMOVE_NUMBER,
    RENAME,
    Phases,
)
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.orm.rollout.following import name_in_use, place_of
from dynamo_single.orm.rollout.states import ABSENT, PUBLIC, Facet, KeyTemplates, OpenChange, Rename, StoredForm
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.references import name_of_count


def form_of(snapshot: Snapshot, label: str, *, is_new: bool = False) -> StoredForm:
    """Return the form of a model whose items all match a snapshot; a new model has no items of earlier versions."""
    return StoredForm(
        label=label.lower(),
        primary=snapshot.key_fingerprint("primary"),
        attributes=_attributes(snapshot),
        keys=dict.fromkeys(keys_of(snapshot), PUBLIC),
        templates=keys_of(snapshot),
        rules=dict.fromkeys(_rules(snapshot), PUBLIC),
        version=snapshot.schema_version if is_new else snapshot.oldest_version,
        raised_to=snapshot.schema_version,
    )


def _attributes(snapshot: Snapshot) -> dict[str, str]:
    return {each.stored: snapshot.attribute_fingerprint(name) for name, each in snapshot.attributes.items()}


def _parts(snapshot: Snapshot, form: StoredForm) -> set[tuple[str, str]]:
    """Return the attributes with their names, the keys and the rules, by the earliest fingerprint of each."""
    texts = [snapshot.key_fingerprint("primary"), *keys_of(snapshot), *_rules(snapshot)]
    named = [*_attributes(snapshot).items(), *(("", text) for text in texts)]
    return {(name, form.canonical(text)) for name, text in named}


def _public_parts(form: StoredForm) -> set[tuple[str, str]]:
    """Return the parts that all code may read, as ``_parts()`` names them."""
    found = {(name, form.canonical(text)) for name, text in form.attributes.items() if name not in form.unfilled}
    found |= {("", form.canonical(text)) for text, facet in {**form.keys, **form.rules}.items() if facet == PUBLIC}
    return found | {("", form.canonical(form.primary))}


def is_of(form: StoredForm, snapshot: Snapshot) -> bool:
    """Return whether all parts of a snapshot are complete in a form."""
    return _parts(snapshot, form) <= _public_parts(form)


def _written(snapshot: Snapshot) -> set[str]:
    """Return the physical names that code writes, including the counts of checked references."""
    checked = (each.stored for each in snapshot.attributes.values() if each.checked)
    return {*_attributes(snapshot), *(name_of_count(snapshot.item_type, stored) for stored in checked)}


def keys_of(snapshot: Snapshot) -> dict[str, KeyTemplates]:
    """Return the keys on indexes by fingerprint, including the key of the trash."""
    stored = {name: each.stored for name, each in snapshot.attributes.items()}
    trash = (registry.TRASH,) if registry.TRASH in snapshot.access_keys else ()
    return {
        snapshot.key_fingerprint(name): KeyTemplates.of(snapshot.access_keys[name], stored)
        for name in (*snapshot.keys, *trash)
    }


def _pairs(before: Snapshot, after: Snapshot, renamed: tuple[str, str] = ("", "")) -> list[tuple[str, str]]:
    """Return the fingerprints of two snapshots that differ in the name of one attribute, in pairs."""
    old, new = renamed
    names = [(name, new if name == old else name) for name in before.attributes]
    return [
        *(
            (before.key_fingerprint(one), after.key_fingerprint(other))
            for one, other in zip(before.access_keys, after.access_keys, strict=True)
        ),
        *zip(_rules(before), _rules(after), strict=True),
        *((before.attribute_fingerprint(one), after.attribute_fingerprint(other)) for one, other in names),
    ]


def _rules(snapshot: Snapshot) -> list[str]:
    return [snapshot.claim_rule(each).fingerprint for each in snapshot.unique]


@dataclass(frozen=True)
class FormChange:
    """The effect of one operation on a form, phase by phase.

    ``labels`` are the model's labels before and after. ``values`` are the physical names that items may lack until the
    change has ended. ``renamed`` are the Python names before and after of an attribute that keeps its values under
    another physical name. ``migration`` is the name of the migration, for messages.
    """

    before: Snapshot
    after: Snapshot
    labels: tuple[str, str]
    phases: Phases
    migration: str
    values: tuple[str, ...] = ()
    renamed: tuple[str, str] | None = None

    @property
    def last(self) -> int:
        """The number of the last phase."""
        return len(self.phases) - 1

    def is_over(self, form: StoredForm, *, is_reverted: bool = False) -> bool:
        """Return whether the change has ended by a form, or its revert has.

        Django records both after the last bump, and a run that was killed before that must not start again. Some
        changes leave the form as it is, such as a function over items. They are never over.
        """
        one, other = (self.after, self.before) if is_reverted else (self.before, self.after)
        before, after, found = _parts(one, form), _parts(other, form), _public_parts(form)
        return before != after and after - before <= found and found.isdisjoint(before - after)

    def taken_over(self, form: StoredForm) -> tuple[StoredForm, int]:
        """Return the form and the phase of a change that an earlier release has started. Any pass may have begun.

        A rename has the phase of its names. Additions start at their first phase, whose passes for the way back remove
        earlier results. Other changes start at the second phase. See also ``OpenChange.is_former``.
        """
        if self._stored_names is not None:
            recorded = form.renames.get(self._stored_names[1])
            number = 0 if recorded is None else recorded.phase
        elif self.phases is PAUSE and (moved := _attributes(self.after).keys() - _attributes(self.before).keys()):
            # Old code still writes the old name in the first case, and new code only the new name in the last case.
            number = self.last if moved <= form.attributes.keys() else 0
            form = replace(form, renames={new: each for new, each in form.renames.items() if new not in moved})
        else:
            number = 0 if self.phases[0].back else 1
        return self.in_phase(form, number), number

    def in_phase(self, form: StoredForm, number: int) -> StoredForm:
        """Return a form as it is while the change is in a phase. The effects of other changes are kept."""
        phase, is_last = self.phases[number], number == self.last
        form = self._with_synonyms(form)
        for name in self._taken(form) if phase.refused == "before" else ():
            form = self._without_former(form, name)
        is_added, is_removed = self.phases in (ADD_VALUE, ADD_NUMBER), self.phases in (REMOVE_DERIVED, REMOVE_NUMBER)
        gone = _written(self.before) - _written(self.after) if is_removed else set()
        lacking = {*self.values} if is_added else gone & _attributes(self.before).keys()
        unfilled = {*form.unfilled} - {*self.values} - lacking
        if not is_last and "public" not in phase.parts.values():
            unfilled |= lacking
        required = dict(form.required)
        if is_added:
            part = next(iter(self.values), f"what {self.migration} writes")
            required.pop(part, None)
            if phase.refused == "before":
                required[part] = self.migration
        paused = "" if self.phases is PAUSE and form.paused == self.migration else form.paused
        return replace(
            form,
            labels=self._labels_in(form),
            **self._keys_in(form, number),
            attributes=self._attributes_in(form, number),
            renames=self._renames_in(form, number),
            rules=self._rules_in(form, number),
            primary=self._primary(form, is_last),
            unfilled=tuple(sorted(unfilled)),
            required=required,
            changed={**form.changed, **dict.fromkeys(self._changed_parts(form), self.migration)},
            kept=tuple(sorted({*form.kept} - gone if is_last else {*form.kept} | gone)),
            paused=self.migration if phase.refused == "everybody" else paused,
        )

    def _labels_in(self, form: StoredForm) -> tuple[str, ...]:
        """Return the other labels of the model while it is renamed: code of before and of after may use its items."""
        if len(set(self.labels)) == 1:
            return form.labels
        return tuple(sorted({*form.labels, *self.labels} - {form.label}))

    def _changed_parts(self, form: StoredForm) -> set[str]:
        """Return the parts that differ before and after, except parts whose name is the only difference."""
        found: set[str] = set()
        if self._stored_names is None:
            one, other = _attributes(self.before), _attributes(self.after)
            found = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
            found |= _written(self.before) ^ _written(self.after)
        rules, later = ({form.canonical(each) for each in _rules(some)} for some in (self.before, self.after))
        found |= rules ^ later
        if self._primary(form, is_last=True) != self._primary(form, is_last=False):
            found.add("primary")
        if self.before.item_type != self.after.item_type:
            found.add("itemType")
        return found

    def ended(self, form: StoredForm, *, is_reverted: bool = False) -> StoredForm:
        """Return a form after the change, or after it was reverted, without what belongs to neither."""
        kept, gone = (self.before, self.after) if is_reverted else (self.after, self.before)
        own = {*_attributes(gone)} - {*_attributes(kept)}
        attributes = {name: text for name, text in form.attributes.items() if name not in own}
        kept_keys = {form.canonical(each) for each in keys_of(kept)}
        lost = {form.canonical(each) for each in keys_of(gone)} - kept_keys
        kept_rules = {form.canonical(each) for each in _rules(kept)}
        lost_rules = {form.canonical(each) for each in _rules(gone)} - kept_rules
        label = self.labels[0 if is_reverted else 1]
        known = {*form.labels, form.label, *self.labels} - {label}
        if is_reverted:
            known -= {self.labels[1]}
        renames, synonyms = form.renames, form.synonyms
        if is_reverted and self._stored_names is not None:
            renames = {new: each for new, each in renames.items() if new != self._stored_names[1]}
            pairs = [pair for pair in self._synonym_pairs() if pair[0] != pair[1]]
            synonyms = {one: other for one, other in synonyms.items() if one not in {later for _, later in pairs}}
        required, changed = dict(form.required), dict(form.changed)
        if is_reverted:
            own_parts = self._changed_parts(form)
            changed = {part: each for part, each in changed.items() if part not in own_parts or each != self.migration}
        elif self._stored_names is not None:
            # The requirements and the last change of the old name apply to the new name.
            old, new = self._stored_names
            required |= {new: required.pop(old)} if old in required else {}
            changed |= {new: changed.pop(old)} if old in changed else {}
        return replace(
            form,
            label=label if form.label in self.labels else form.label,
            labels=tuple(sorted(known)) if form.label in self.labels and len(set(self.labels)) > 1 else form.labels,
            attributes=attributes,
            changed=changed,
            keys={text: each for text, each in form.keys.items() if text not in lost and each != ABSENT},
            templates={
                **{text: each for text, each in form.templates.items() if form.canonical(text) not in lost},
                **(self._own(form, keys_of(kept)) if is_reverted else {}),
            },
            rules={text: each for text, each in form.rules.items() if text not in lost_rules},
            unfilled=tuple(name for name in form.unfilled if name in attributes),
            required={name: each for name, each in required.items() if name in attributes or name not in own},
            renames=renames,
            synonyms=synonyms,
            kept=tuple(name for name in form.kept if name not in _written(self.before) ^ _written(self.after)),
            version=max(form.version, kept.oldest_version),
            raised_to=max(form.raised_to, kept.schema_version),
        )

    def _with_synonyms(self, form: StoredForm) -> StoredForm:
        """Return the form with the fingerprints of keys, rules and attributes that only name another attribute."""
        for one, other in self._synonym_pairs():
            earlier, later = form.canonical(one), form.canonical(other)
            if earlier != later:
                form = replace(form, synonyms={**form.synonyms, later: earlier})
        # New tables and tables of an earlier release contain the later fingerprints.
        return replace(
            form,
            keys={form.canonical(text): facet for text, facet in form.keys.items()},
            templates={**{form.canonical(text): each for text, each in form.templates.items()}, **form.templates},
            rules={form.canonical(text): facet for text, facet in form.rules.items()},
        )

    def _synonym_pairs(self) -> list[tuple[str, str]]:
        """Return the fingerprints before and after a rename of parts whose name is the only difference."""
        if self.renamed is None or self.phases is not RENAME:
            return []
        return _pairs(self.before, self.after, self.renamed)

    def _taken(self, form: StoredForm) -> set[str]:
        """Return the added physical names that another attribute had before it was renamed."""
        added = _attributes(self.after).keys() - _attributes(self.before).keys()
        return added & {each.old for each in form.renames.values()}

    def _without_former(self, form: StoredForm, name: str) -> StoredForm:
        """Return a form in which a name no longer means the attribute that had it: code of that time is refused."""
        new = name_in_use(name, form.renames)
        python = next((each for each, info in self.before.attributes.items() if info.stored == new), None)
        renames = {text: each for text, each in form.renames.items() if each.old != name}
        form = replace(form, renames=renames)
        if python is None:
            return form
        info = dataclass_replace(self.before.attributes[python], stored=name)
        former = dataclass_replace(self.before, attributes={**self.before.attributes, python: info})
        moved = {form.canonical(one): other for one, other in _pairs(former, self.before) if one != other}

        def text_of(text: str) -> str:
            return moved.get(text, text)

        synonyms = {text: moved.get(form.canonical(text), each) for text, each in form.synonyms.items()}
        return replace(
            form,
            attributes={each: text_of(text) for each, text in form.attributes.items()},
            keys={text_of(text): each for text, each in form.keys.items()},
            templates={text_of(text): each for text, each in form.templates.items()},
            rules={text_of(text): each for text, each in form.rules.items()},
            primary=text_of(form.primary),
            synonyms={text: each for text, each in synonyms.items() if text not in moved.values()},
        )

    def _attributes_in(self, form: StoredForm, number: int) -> dict[str, str]:
        """Return the attributes with the added, altered and removed ones of a phase."""
        before, after, phase = _attributes(self.before), _attributes(self.after), self.phases[number]
        is_paused = self.phases is PAUSE and number < self.last
        # Under one name it is what it was until code of before is refused.
        is_early = self.phases in (ADD_VALUE, ADD_NUMBER) and phase.refused == "nobody"
        keeps_old = self.phases is RENAME or (number < self.last and {"old", "number"} & phase.parts.keys())
        taken = self._taken(form) if is_early else set()
        found = {name: text for name, text in form.attributes.items() if name in after or name not in before}
        if is_paused:
            found = {name: text for name, text in found.items() if name not in after or name in before}
        else:
            found |= {name: text for name, text in after.items() if name not in before and name not in taken}
        if keeps_old:
            found |= {name: text for name, text in before.items() if name not in after}
        if self.phases is not RENAME:  # which changes only the names in fingerprints: they are synonyms
            altered = {name for name in before.keys() & after.keys() if before[name] != after[name]}
            found |= {name: (before if is_paused or is_early else after)[name] for name in altered}
        return found

    def _renames_in(self, form: StoredForm, number: int) -> Mapping[str, Rename]:
        if self._stored_names is None:
            return form.renames
        old, new = self._stored_names
        others = {name: each for name, each in form.renames.items() if name != old or each.old != new}
        return {**others, new: Rename(old, number)}

    @property
    def _stored_names(self) -> tuple[str, str] | None:
        if self.renamed is None or self.phases is not RENAME:
            return None
        return self.before.attributes[self.renamed[0]].stored, self.after.attributes[self.renamed[1]].stored

    def _facets(
        self, old: AbstractSet[str], new: AbstractSet[str], number: int, *parts: str
    ) -> dict[str, Facet | None]:
        """Return the facets of removed and of added keys or rules in a phase; ``None`` for absent ones.

        ``parts`` are their names in the phases: the removed ones' first, the added ones' last.
        """
        of_old, of_new = (PUBLIC, None) if number < self.last else (None, PUBLIC)
        facets: tuple[Facet | None, Facet | None] = of_old, of_new
        if any(not each.parts.keys().isdisjoint(parts) for each in self.phases):
            facets = self.phases[number].parts.get(parts[0]), self.phases[number].parts.get(parts[-1])
        return {**dict.fromkeys(old - new, facets[0]), **dict.fromkeys(new - old, facets[1])}

    def _keys_in(self, form: StoredForm, number: int) -> dict[str, Any]:
        old, new = self._own(form, keys_of(self.before)), self._own(form, keys_of(self.after))
        facets = self._facets(old.keys(), new.keys(), number, "old key", "new key")
        keys = {text: each for text, each in form.keys.items() if text not in facets}
        templates = {**form.templates, **old, **new}
        # An item has one key at each place.
        taken = {place_of(templates[text]) for text, facet in facets.items() if facet is not None}
        keys = {
            text: each for text, each in keys.items() if text not in templates or place_of(templates[text]) not in taken
        }
        keys |= {text: facet for text, facet in facets.items() if facet is not None}
        return {"keys": keys, "templates": templates}

    def _own(self, form: StoredForm, keys: Mapping[str, KeyTemplates]) -> dict[str, KeyTemplates]:
        return {form.canonical(text): each for text, each in keys.items()}

    def _rules_in(self, form: StoredForm, number: int) -> dict[str, Facet]:
        old, new = ({form.canonical(each) for each in _rules(some)} for some in (self.before, self.after))
        facets = self._facets(old, new, number, "claims")
        rules = {text: each for text, each in form.rules.items() if text not in facets}
        if self.phases is ADD_UNIQUE:
            return rules | {text: facet or ABSENT for text, facet in facets.items()}
        return rules | {text: facet for text, facet in facets.items() if facet is not None}

    def _primary(self, form: StoredForm, is_last: bool) -> str:
        one, other = (each.key_fingerprint("primary") for each in (self.before, self.after))
        if form.canonical(one) == form.canonical(other) or form.primary not in (one, other):
            return form.primary
        return other if is_last else one


def is_same(one: OpenChange, other: OpenChange) -> bool:
    """Return whether two records belong to the same operation."""
    return (one.migration, one.parameters.get("number")) == (other.migration, other.parameters.get("number"))


def without_change(form: StoredForm, change: OpenChange) -> StoredForm:
    """Return a form without the record of an open change."""
    return replace(form, opened=tuple(each for each in form.opened if not is_same(each, change)))


def with_change(form: StoredForm, change: OpenChange) -> StoredForm:
    """Return a form with the record of an open change, which replaces an earlier record of the change."""
    if any(is_same(each, change) for each in form.opened):
        return replace(form, opened=tuple(change if is_same(each, change) else each for each in form.opened))
    return replace(form, opened=(*form.opened, change))
