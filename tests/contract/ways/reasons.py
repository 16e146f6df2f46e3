"""Refusals without a row, and why."""

from __future__ import annotations

import itertools

#: Folders and files, by how their paths begin.
ELSEWHERE = {
    "admin/": "An option of the admin: the way out is another declaration, and no query.",
    "auth/": "Groups that follow from a user's attribute; the methods that are named are tested with them.",
    "backend/": "Django's SQL, of which nothing is to be compared; tests of the backend run each message's method.",
    "cache/": "Django's cache, which has no query.",
    "evolution/": "Work on items by an operator; tests of migrations run the commands.",
    "orm/expressions/": "What SQL alone can compute; tests of expressions provoke each of these refusals.",
    "orm/rollout/": "A number of shards, which SQL databases do not have.",
    "orm/model/migration_state.py": "A model in a migration; tests of migrations run the operation that is named.",
    "orm/model/pynamodb.py": "PynamoDB's interface, which Django does not have.",
    "table/": "The table itself, which SQL databases do not have.",
    "contrib/doctor/": "A command of ours, which Django does not have.",
}

GUARD = "A guard of a lower layer: querysets refuse it before, or never ask for it."
OWN = "A method or an option of ours, which Django does not have: nothing is to be compared."
MIGRATE = "The way out is a command, which tests of migrations run."
KEPT = "The way out is to leave the value as it is."
SETS = "SQL compares or aggregates rows where this app has objects; tests of their own provoke it."
ELSE = "It takes a generic relation, or a model in an SQL database; the way out is another query."
OUTER = "It has no row without an outer queryset; tests of subqueries provoke it."
MANY = "It takes more objects than a test of a way out writes; tests of its own limit reach it."

#: Places by their names in ``collected.py``.
REASONS: dict[str, str] = dict(
    itertools.chain.from_iterable(
        ((name, reason) for name in names)
        for reason, names in (
            (
                GUARD,
                (
                    "exceptions.py: _immutable",
                    *(f"orm/conditions/lowering.py: lower {number}" for number in (1, 2)),
                    *(f"orm/conditions/lowering.py: _lower_compare {number}" for number in (1, 2, 3)),
                    "orm/conditions/lowering.py: _lower_identity",
                    "orm/conditions/lowering.py: _lower_size",
                    "orm/conditions/lowering.py: _lower_contains 2",
                    "orm/conditions/lowering.py: _lower_contains 1",
                    "orm/conditions/matching.py: _compare",
                    "orm/plan/planner.py: _check_names",
                    "orm/query/annotate.py: _measured 2",
                    "orm/query/interpreted.py: _updated",
                    "orm/query/state.py: state_of",
                    "orm/results/aggregates.py: check_function 2",
                    "orm/results/aggregates.py: read_measure",
                    "orm/results/aggregates.py: _field 3",
                    "orm/results/aggregates.py: _default",
                    "orm/results/columns.py: columns 1",
                    "orm/where/tree.py: read_ordering",
                    *(
                        f"orm/query/write_methods.py: WritingQuerySet.{name}"
                        for name in ("_insert", "_update", "_raw_delete")
                    ),
                    "orm/requests/compiler.py: compile_action",
                    *(f"orm/requests/compiler.py: compile_transaction {number}" for number in (1, 3)),
                    *(f"orm/requests/compiler.py: _whole_update {number}" for number in (1, 2)),
                    "orm/requests/expressions.py: _write",
                    *(f"orm/requests/expressions.py: _write_stored {number}" for number in (1, 2)),
                    "orm/results/state.py: QueryState.query",
                    "orm/where/arguments.py: raise_unknown 1",
                    "orm/where/lookups.py: python_condition",
                    "orm/where/lookups.py: operator_of 2",
                    "orm/where/lookups.py: operator_of 3",
                    "orm/where/tree.py: _ordered_attributes",
                ),
            ),
            (
                OWN,
                (
                    "counters.py: _added",
                    *(f"counters.py: _check {number}" for number in (1, 2, 3)),
                    "counters.py: _check_alone",
                    "orm/model/model.py: Model._to_save 1",
                    "orm/model/model.py: Model._to_save 2",
                    "orm/reading/budget.py: Allowance._error",
                    "orm/reading/page.py: _check_limit",
                    "orm/requests/atomic_block.py: Block.add",
                    "orm/requests/atomic_block.py: Block.check_open",
                    "orm/results/pages.py: cursor_for 1",
                    "orm/results/pages.py: _plan 3",
                    "orm/schema/attributes/scalars.py: IdAttribute.first_at",
                    "orm/schema/fields/fetching.py: checked_mode",
                    *(f"orm/where/comparisons.py: _check {number}" for number in (1, 2, 4)),
                    "orm/where/declared_conditions.py: read_precondition",
                    "orm/where/declared_conditions.py: read_declared",
                    *(f"orm/where/declared_conditions.py: _comparison {number}" for number in (1, 2)),
                    "orm/where/declared_conditions.py: _of_two",
                    "orm/write/assignments.py: _operation",
                    "orm/write/assignments.py: _combined_constant",
                    *(f"orm/write/assignments.py: _constant {number}" for number in (3, 4)),
                    "orm/write/queryset_update.py: delete",
                    "orm/write/queryset_update.py: restore",
                    "pagination.py: _uncounted",
                    "transactions.py: _enter",
                    "transactions.py: require",
                    *(f"transactions.py: read {number}" for number in (1, 2)),
                ),
            ),
            (
                MIGRATE,
                (
                    *(f"orm/plan/advice.py: key_not_filled {number}" for number in (1, 2)),
                    "orm/plan/advice.py: attribute_not_filled",
                    "orm/reading/current_names.py: _refuse_hidden",
                ),
            ),
            (
                KEPT,
                (
                    "orm/items/form.py: ItemForm.refuse_fixed",
                    "orm/items/form.py: ItemForm.refuse_immutable",
                    "orm/items/form.py: ItemForm.refuse_naming",
                    "orm/model/model.py: Model._update_names",
                    "orm/schema/attributes/references.py: AuthorField._acting",
                    "orm/schema/attributes/references.py: AuthorField.pre_save",
                    "orm/schema/attributes/references.py: CopiedAttribute.__set__",
                    "orm/schema/attributes/references.py: CounterAttribute.__set__",
                    "orm/schema/attributes/computed.py: ComputedAttribute.__set__",
                    "orm/schema/fields/base.py: IdentityDescriptor._forget",
                    *(f"orm/write/queryset_update.py: _target {number}" for number in (3, 4)),
                ),
            ),
            (OUTER, ("orm/query/interpreted.py: separated",)),
            (
                SETS,
                (
                    *(f"orm/query/set_operations.py: {name}" for name in ("combined", "_columns")),
                    "orm/query/state.py: StatefulQuerySet._refuse_combined",
                    "orm/query/queryset.py: QuerySet._check_identity",
                    "orm/query/interpreted.py: aggregate",
                ),
            ),
            (
                ELSE,
                (
                    "orm/relations/joining.py: check 1",
                    "orm/relations/joining.py: check 2",
                ),
            ),
            (
                MANY,
                (
                    "orm/effects/send.py: send_block",
                    "orm/effects/copy_updates.py: _too_many",
                    "orm/reading/single.py: transactional_items",
                    "orm/relations/joining.py: _check_rows",
                    "orm/reading/limits.py: Steps.hold",
                    "orm/reading/limits.py: Steps.take",
                    "orm/requests/atomic_block.py: Block._check_room",
                    "orm/requests/compiler.py: compile_transaction 2",
                    "orm/results/cached_lists.py: CachedLists._items",
                    "orm/results/objects.py: _check_size",
                    "orm/results/objects.py: _count_up_to",
                    "orm/write/move.py: _move_tree",
                    "orm/write/move.py: _refuse_orphans",
                    "orm/write/move_references.py: refuse_sql_references",
                ),
            ),
        )
    )
)
