"""Propose a reason for a new failure, by its error; the author of the commit decides.

Each is SQL itself or a decision, with a line of docs/limitations.md. A failure without a proposal is not done yet.
"""

from __future__ import annotations

import re

NO_SQL = "SQL itself: No computing while reading."
SQL_LAYER = "SQL itself: Django's SQL layer is not used."
ALIASES = "SQL itself: `using()` chooses no table."
ATTRIBUTES = "Decision 1: Fields of Django, attributes of PynamoDB."
INHERITANCE = "Decision 1: No multi-table inheritance"
SAVES = "Decision 6: `save()` does not change a primary key"
DELETED = "Decision 6: A deleted object stays deleted."
SESSIONS = "Decision 47: Sessions are no model."
CACHE = "Decision 15: The cache"
COMPUTED = "Decision 70: Permissions"
REFERENCES = "Decision 24: References are not checked by DynamoDB."
MESSAGES = "Decision 43: Errors have texts of their own."

#: ``(pattern, reason)``; the first pattern that the error matches applies.
PROPOSALS = (
    (r"(extra|raw)\(\) is not|RawSQL", NO_SQL),
    (r"not found in ['\"](Query|GetItem|BatchGetItem|Scan|PutItem|UpdateItem|Trans)", NO_SQL),
    (r"Django tried to turn it into SQL|^NotSupported: Cannot execute", SQL_LAYER),
    (r"using\('|UserExists|database alias", ALIASES),
    (r"_ptr'?\"? |_ptr'|must be a .* instance|(Vehicle|Media) or its pk|inherits from", INHERITANCE),
    (r"'Book' instance expected, got aggregation_regress\.", INHERITANCE),
    (r"there is no attribute for a|no option|takes keyword arguments only|unexpected keyword argument", ATTRIBUTES),
    (r"makes? up the primary key, which save\(\) does not change", SAVES),
    (r"was deleted since it was read", DELETED),
    (r"CustomSession|dynamo_single\.Session|'Manager' object has no attribute 'save'", SESSIONS),
    (r"Cannot (insert into|delete from|update|query) (contenttypes|auth)\.", COMPUTED),
    (r"[Cc]ache table|cache entry", CACHE),
    (r"ProtectedError not raised|RestrictedError not raised|IntegrityError not raised", REFERENCES),
    (r"AssertionError: .* not found in ", MESSAGES),
)


def proposed(error: str) -> str | None:
    """Return the proposed reason for an error, or ``None``."""
    first = error.partition("\n")[0]
    return next((reason for pattern, reason in PROPOSALS if re.search(pattern, first)), None)
