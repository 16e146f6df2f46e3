"""The index keys that a model's items are written with: its own, or while they change those that old code reads by.

The table says which. Pure: ``bindings`` has what is open.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from dynamo_single.exceptions import FormNotApplied
from dynamo_single.orm.rollout.states import KeyTemplates, StoredForm
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fingerprints import key_fingerprints
from dynamo_single.orm.schema.identities import codec_of
from dynamo_single.orm.schema.keys.template import Codec, KeyPart, Template, codec_for
from dynamo_single.orm.schema.layout import AccessKey, IndexCondition, ModelLayout
from dynamo_single.table import names

Keys = tuple[AccessKey, ...]

_TRASH = f"{names.TRASH_PREFIX}#"


def is_trash(key: AccessKey) -> bool:
    """Whether it is the key of items in the trash."""
    return key.partition.source.startswith(_TRASH)


def keys_of(layout: ModelLayout, form: StoredForm) -> Keys | None:
    """The keys that a model's items are written with by the table's form; ``None`` if they are the model's own.

    A key that every item has is written until a migration that takes it away is finished: code of before reads by it.
    Raises ``FormNotApplied`` if the model lacks what such a key is made of.
    """
    keys = _asked_for(layout, form)
    return None if keys == layout.index_keys else keys


def _asked_for(layout: ModelLayout, form: StoredForm) -> Keys:
    own = key_fingerprints(layout)
    filled = {text for text, phase in form.keys.items() if phase == "filled"}
    foreign = filled.difference(own.values())
    if not foreign:
        return layout.index_keys
    taken = {_place(key) for key in layout.index_keys if own[key.name] in filled}
    templates = {text: form.templates.get(text) for text in sorted(foreign)}
    found = {
        _place(key): key
        for text, templated in templates.items()
        if templated is None or _place(templated) not in taken
        for key in (_made(layout, text, templated),)
    }
    kept = (key for key in layout.index_keys if _place(key) not in found)
    return (*kept, *found.values())


def _place(key: AccessKey | KeyTemplates) -> tuple[str | None, bool]:
    """Where a key is in an item: on one index an item has one, and in the trash another one."""
    partition = key.partition if isinstance(key.partition, str) else key.partition.source
    return key.index, partition.startswith(_TRASH)


def _made(layout: ModelLayout, text: str, templated: KeyTemplates | None) -> AccessKey:
    python = {info.stored: name for name, info in layout.attributes.items()}
    python |= {twin.other: python[twin.used] for twin in layout.twins}
    lacking = [] if templated is None else sorted(set(templated.stored.values()) - python.keys())
    divided = templated is not None and templated.sharded and layout.sharding is None
    if templated is None or lacking or divided:
        why = f"{layout.label} has nothing that is stored as {', '.join(map(repr, lacking))}"
        why = f"{layout.label} has no shards" if divided and not lacking else why
        raise FormNotApplied(
            f"The items of {layout.label} have the key {text!r}, which code of before reads by, and "
            f"{why if lacking or divided else 'the table does not say how it is written'}. Nothing was read or "
            "written. Remove a key by a migration of its own: carry it out (manage.py migrate), stop the code that "
            "reads by it and finish it (manage.py migrate --finish); remove attributes that it names afterwards."
        )
    renamed = {variable: python[stored] for variable, stored in templated.stored.items()}
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
