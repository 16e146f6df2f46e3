"""Snapshots in Django's project state instead of a ``ModelState``, and the form of a model in the table's state item.

Django's operations on states keep a subclass in ``ProjectState.models``: ``clone()``, the loader, the executor forwards
and backwards, and squashing.

A change of a model is the difference of two snapshots. While it is open, the recorded form contains the parts of both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.db.migrations.state import ModelState, ProjectState
from msgspec.structs import replace

from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.model.migration_state import RefusingManager
from dynamo_single.orm.rollout.states import KeyTemplates, OpenChange, Phase, Rename, StoredForm
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fields.base import IN_DYNAMODB, LONGEST_PK

#: The column type of a SQL foreign key to one of our models, by the kind of the attribute that it refers to.
_SQL_KEYS: dict[str, Any] = {"number": models.BigIntegerField, "uuid": models.UUIDField}


class SnapshotState(ModelState):
    """One of our models at one time. It renders to an unmanaged stand-in that SQL models can refer to."""

    snapshot: Snapshot

    @classmethod
    def make(cls, app_label: str, name: str, snapshot: Snapshot) -> SnapshotState:
        """Return the state of a model with this snapshot."""
        made = cls(
            app_label, name, [_primary_key(snapshot)], {"managed": False, "db_table": name.lower() + IN_DYNAMODB}
        )
        made.snapshot = snapshot
        return made

    def clone(self) -> SnapshotState:
        """Return a separate state with the same immutable snapshot."""
        made: Any = super().clone()
        made.snapshot = self.snapshot
        return made  # type: ignore[no-any-return]  # Django's is not generic

    def render(self, apps: Any) -> Any:
        """Return the stand-in. Its managers refuse every query, because ``ChangeItems`` converts historical items."""
        made: Any = super().render(apps)
        made.objects = RefusingManager(f"{self.app_label}.{self.name}")
        return made


def _primary_key(snapshot: Snapshot) -> tuple[str, Any]:
    """Return the name and type of the field that SQL models refer to."""
    if len(snapshot.identity) == 1:
        (name,) = snapshot.identity
        kind = snapshot.attributes[name].attribute(name).key_kind or ""
        if kind in _SQL_KEYS:
            return name, _SQL_KEYS[kind](primary_key=True)
        return name, models.CharField(max_length=LONGEST_PK, primary_key=True)
    return "identity", models.CharField(max_length=LONGEST_PK, primary_key=True)


def snapshot_in(state: ProjectState, app_label: str, name: str) -> Snapshot:
    """Return the snapshot of a model in a state; raise ``ConfigurationError`` if no earlier migration created it."""
    found = state.models.get((app_label, name.lower()))
    if not isinstance(found, SnapshotState):
        raise ConfigurationError(
            f"The migrations of {app_label} have no model {name} in DynamoDB. An AddModel has to come first."
        )
    return found.snapshot


def put_snapshot(state: ProjectState, app_label: str, name: str, snapshot: Snapshot) -> None:
    """Replace the snapshot of a model in a state."""
    key = (app_label, name.lower())
    before = state.models[key]
    made = SnapshotState.make(app_label, before.name, snapshot)
    state.models[key] = made
    if made.fields.keys() != before.fields.keys():
        state.reload_model(*key)


OPEN: Phase = "open"
FILLED: Phase = "filled"
GOING: Phase = "going"


def form_of(snapshot: Snapshot, label: str, *, is_new: bool = False) -> StoredForm:
    """Return the form of a model whose items all match a snapshot; a new model has no items of earlier versions."""
    return StoredForm(
        label=label.lower(),
        primary=snapshot.key_fingerprint("primary"),
        attributes=_attributes(snapshot),
        keys=dict.fromkeys(_keys(snapshot), FILLED),
        templates=_keys(snapshot),
        rules=dict.fromkeys(map(snapshot.unique_fingerprint, snapshot.unique), FILLED),
        schema_version=snapshot.schema_version if is_new else snapshot.oldest_version,
        raised_to=snapshot.schema_version,
    )


def _attributes(snapshot: Snapshot) -> dict[str, str]:
    return {each.stored: snapshot.attribute_fingerprint(name) for name, each in snapshot.attributes.items()}


def _keys(snapshot: Snapshot) -> dict[str, KeyTemplates]:
    """Return the keys on indexes by fingerprint, including the key of the trash."""
    stored = {name: each.stored for name, each in snapshot.attributes.items()}
    trash = (registry.TRASH,) if registry.TRASH in snapshot.access_keys else ()
    return {
        snapshot.key_fingerprint(name): KeyTemplates.of(snapshot.access_keys[name], stored)
        for name in (*snapshot.keys, *trash)
    }


@dataclass(frozen=True)
class Difference:
    """The change that one operation makes to a form.

    ``unfilled`` contains the physical names that items may lack until the change is finished. ``held_back`` contains
    the names that no item is guaranteed to have before then: code that needs them raises an error until the change is
    finished. ``as_before`` maps a new fingerprint to the old one for keys whose texts do not change.
    """

    before: Snapshot
    after: Snapshot
    #: The model's labels before and after.
    labels: tuple[str, str]
    unfilled: tuple[str, ...] = ()
    held_back: tuple[str, ...] = ()
    as_before: Mapping[str, str] | None = None
    #: The old and new physical names of an attribute that stores the same values under both.
    renamed: tuple[str, str] | None = None

    def opened_form(self, form: StoredForm, change: OpenChange) -> StoredForm:
        """Return the form at the start of the change: new parts are open, and removed parts are still there."""
        # Another open change may hold back attributes too. Add only the attributes of this change.
        new = _changed(_attributes(self.before), _attributes(self.after))
        attributes = {name: text for name, text in new.items() if name not in self.held_back}
        return replace(
            form,
            attributes={**attributes, **form.attributes},
            keys=self._with(form.keys, _keys(self.after)),
            templates={**form.templates, **_keys(self.before), **_keys(self.after)},
            renames=form.renames if self.renamed is None else {**form.renames, **self._rename(OPEN)},
            rules=self._with(form.rules, map(self.after.unique_fingerprint, self.after.unique)),
            unfilled=tuple(dict.fromkeys((*form.unfilled, *self.unfilled))),
            opened=(*(each for each in form.opened if not is_same(each, change)), change),
        )

    def _with(self, phases: Mapping[str, Phase], wanted: Iterable[str]) -> dict[str, Phase]:
        known = self.as_before or {}
        return {**{each: phases.get(known.get(each, ""), OPEN) for each in wanted}, **phases}

    @property
    def leaving(self) -> frozenset[str]:
        """The fingerprints of removed keys. Old code writes these keys until the change is finished."""
        kept = {*_keys(self.after), *(self.as_before or {}).values()}
        return frozenset(_keys(self.before).keys() - kept)

    def ending_form(self, form: StoredForm) -> StoredForm:
        """Return the form after old code has stopped: removed parts still exist but are no longer written."""
        keys = {each: GOING if each in self.leaving else phase for each, phase in form.keys.items()}
        return replace(form, keys=keys, renames=self._renames(form, GOING))

    def complete_form(self, form: StoredForm) -> StoredForm:
        """Return the form once every item has the new parts; removed parts stay for code that has read an old form."""
        return replace(
            form,
            attributes={**form.attributes, **_changed(_attributes(self.before), _attributes(self.after))},
            keys={**form.keys, **dict.fromkeys(_new(_keys(self.before), _keys(self.after)), FILLED)},
            rules={**form.rules, **dict.fromkeys(_new(*self._rules), FILLED)},
            unfilled=tuple(name for name in form.unfilled if name not in self.unfilled),
            renames=self._renames(form, FILLED),
        )

    def finished_form(self, form: StoredForm, change: OpenChange | None = None) -> StoredForm:
        """Return the form after the change, without the removed parts."""
        form = self.complete_form(form)
        gone = {
            "attributes": set(_attributes(self.before)) - set(_attributes(self.after)),
            "keys": set(_keys(self.before)) - set(_keys(self.after)),
            "rules": set(self._rules[0]) - set(self._rules[1]),
        }
        opened = form.opened if change is None else tuple(each for each in form.opened if not is_same(each, change))
        attributes = _without(form.attributes, gone["attributes"])
        return replace(
            form,
            # A later migration may have renamed the model and started to move its items.
            label=self.labels[1] if form.label == self.labels[0] else form.label,
            primary=self._primary(form),
            schema_version=max(form.schema_version, self.after.oldest_version),
            raised_to=max(form.raised_to, self.after.schema_version),
            attributes=attributes,
            unfilled=tuple(name for name in form.unfilled if name in attributes),
            renames={
                new: each
                for new, each in form.renames.items()
                if new not in gone["attributes"] and each.old not in gone["attributes"]
            },
            keys=_without(form.keys, gone["keys"]),
            templates=_without({**form.templates, **_keys(self.after)}, gone["keys"]),
            rules=_without(form.rules, gone["rules"]),
            opened=opened,
        )

    def uncounted_form(self, form: StoredForm) -> StoredForm:
        """Return the form after everything except counting is done: no query uses a new counter yet."""
        counters = {each.stored for each in self.after.attributes.values() if each.counted}
        unfilled = tuple(name for name in form.unfilled if name in counters)
        found = self.finished_form(form)
        return replace(found, unfilled=tuple(dict.fromkeys((*found.unfilled, *unfilled))))

    def is_renamed_in(self, form: StoredForm | None) -> bool:
        """Return whether the form says that every item has the new name of a renamed attribute."""
        found = None if form is None or self.renamed is None else form.renames.get(self.renamed[1])
        return found is not None and found.phase != OPEN

    def _rename(self, phase: Phase) -> dict[str, Rename]:
        return {} if self.renamed is None else {self.renamed[1]: Rename(self.renamed[0], phase)}

    def _renames(self, form: StoredForm, phase: Phase) -> dict[str, Rename]:
        return {**form.renames, **{new: each for new, each in self._rename(phase).items() if new in form.renames}}

    def _primary(self, form: StoredForm) -> str:
        one, other = (each.key_fingerprint("primary") for each in (self.before, self.after))
        return other if form.primary == one else form.primary

    @property
    def _rules(self) -> tuple[list[str], list[str]]:
        one, other = ([*map(each.unique_fingerprint, each.unique)] for each in (self.before, self.after))
        return one, other


def is_same(one: OpenChange, other: OpenChange) -> bool:
    """Return whether two records belong to the same operation."""
    return (one.migration, one.parameters.get("number")) == (other.migration, other.parameters.get("number"))


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in after.items() if before.get(name) != text}


def _new(before: Iterable[str], after: Iterable[str]) -> set[str]:
    return set(after) - set(before)


def _without(found: Mapping[str, object], gone: set[str]) -> dict[str, object]:
    return {name: each for name, each in found.items() if name not in gone}
