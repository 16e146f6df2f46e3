"""Set the flags by which upstream skips tests to the values for our models.

The flags of the app's engine describe its connection, which does not execute SQL. Upstream also checks them before
tests of expressions, windows and set operations, which our models compute in memory.
"""

from __future__ import annotations

from typing import Any

from django.db import connections

#: ``{flag: value for the models}``, if the engine has a different value.
FLAGS: dict[str, Any] = {
    # Computed in memory.
    "supports_over_clause": True,
    "supports_aggregate_filter_clause": True,
    "supports_slicing_ordering_in_compound": True,
    "supports_logical_xor": True,
    "supports_temporal_subtraction": True,
    # Checked before each write.
    "supports_table_check_constraints": True,
    # bulk_create() sends batches.
    "has_bulk_insert": True,
    # explain(execute=True).
    "supports_explaining_query_execution": True,
    # DynamoDB has neither collations nor comments, nor defaults of its own.
    "supports_collation_on_charfield": False,
    "supports_collation_on_textfield": False,
    "supports_non_deterministic_collations": False,
    "supports_expression_defaults": False,
    "supports_default_keyword_in_insert": False,
    "supports_default_keyword_in_bulk_insert": False,
}


def take() -> None:
    """Set the flags of every connection."""
    for connection in connections.all():
        for name, value in FLAGS.items():
            setattr(connection.features, name, value)
