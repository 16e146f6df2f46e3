"""The object that holds a unique value, found by its claim: what no key answers, and an index would answer late."""

from __future__ import annotations

from typing import Any

from dynamo_single.exceptions import InvalidValue, KeyNotFilled
from dynamo_single.orm.effects import claims
from dynamo_single.orm.effects.unique_rules import rules_of
from dynamo_single.orm.filled import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.encoding.shown import shown
from dynamo_single.orm.schema.fields.fetching import mark, to_tell
from dynamo_single.table.flow import run


def by_claim(model: Any, attribute: str, value: object) -> Any | None:
    """The object of a model that holds a value of a unique attribute, or ``None``.

    Two GetItems, strongly consistent; one if nothing holds it. Raises ``KeyNotFilled`` while a migration has not
    claimed the values of all items yet.
    """
    described = model._meta.get_field(attribute).attribute
    _check_filled(model, attribute)
    try:
        wanted = claims.claim_key(model, described, value)
        item = claims.owner_item(model, described, value)
    except InvalidValue:
        return None  # nothing holds what cannot be stored
    # Between the two reads the value may have gone to another object.
    if item is None or wanted not in claims.claims_of(model, item).values():
        return None
    return model.from_item(dict(item))


def _check_filled(model: Any, attribute: str) -> None:
    rule = claims.rule_of(model, model._meta.get_field(attribute).attribute)
    if not run(knowledge.has_rule(registry.layout_of(model), rule.fingerprint)):
        raise KeyNotFilled(
            f"{model._meta.label}: not every value of {attribute} is known to be claimed yet, so that an object would "
            "not be found. Carry out what is open: manage.py migrate, and manage.py migrate --finish once all older "
            "code has stopped."
        )


def the_one(queryset: Any, attribute: str, value: object) -> Any:
    """The object of a queryset with a value of an attribute that is unique by itself; raises ``DoesNotExist``.

    As ``by_claim()``, or one GetItem where the value is the whole primary key. Of a queryset with conditions, those are
    asked of the object afterwards.
    """
    model = queryset.model
    if not any(rule.fields == (attribute,) for rule in rules_of(model)):
        return queryset.get(**{attribute: value})
    found = by_claim(model, attribute, value)
    if found is None:
        raise model.DoesNotExist(f"No {model._meta.label} has {attribute} {shown(value)}.")
    mark([found], to_tell(queryset._fetch_mode))
    given = not queryset.query.where.children and queryset._gives_all([found])
    return found if given else queryset.get(pk=found.pk)
