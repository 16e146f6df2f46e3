"""Divide the filter of a Query or Scan in a table with a shape of its own.

DynamoDB rejects a filter by the keys of an index, and does not find attributes that the index lacks. The app evaluates
such conditions after it has read the items. The module does not send requests.
"""

from __future__ import annotations

from msgspec.structs import replace

from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.terms import EVERYTHING, And, Condition, join, names_in
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.schema.keys.reach import Reach


def reach_of(plan: Plan) -> Reach | None:
    """Return the reach of the key that a Query or Scan reads; ``None`` for other plans and tables of the app's own."""
    if plan.kind not in ("query", "scan"):
        return None
    return plan.query.layout.reaches.get(plan.index)


def sent_filter(plan: Plan) -> Condition:
    """Return the part of a plan's filter that DynamoDB can evaluate."""
    return split_filter(plan)[0]


def late_filter(plan: Plan) -> Condition:
    """Return the part of a plan's filter that the app evaluates after reading."""
    return split_filter(plan)[1]


def split_filter(plan: Plan) -> tuple[Condition, Condition]:
    """Return both parts of a plan's filter."""
    reach, given = reach_of(plan), plan.filter
    if reach is None or given == EVERYTHING:
        return given, EVERYTHING
    terms = given.children if isinstance(given, And) else (given,)
    late = [each for each in terms if any(map(reach.is_late, names_in(lower(each, plan.layout))))]
    if not late:
        return given, EVERYTHING
    return join(each for each in terms if each not in late), join(late)


def read_whole(plan: Plan) -> Plan:
    """Return the plan without a projection if the app completes or compares items after reading."""
    reach = reach_of(plan)
    if reach is None or not plan.projection or (reach.projected is None and late_filter(plan) == EVERYTHING):
        return plan
    return replace(plan, projection=())
