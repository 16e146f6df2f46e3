"""Which line of docs/limitations.md a new failure is proposed for, by its error; whoever commits the list decides."""

from __future__ import annotations

import re

#: ``(a part of the error, the bold words of the line)``; the first that is found.
PROPOSALS = (
    (r"LogEntry", "`django.contrib.admin`'s own log"),
    (r"_ptr'?\"? |_ptr'", "No multi-table inheritance"),
    (r"UserExists", "`using()` chooses no table."),
    (r"as_shown|BoundedSelect|r/None", "Forms of the admin"),
    (r"KeyChangeList|'-pk'|object has no attribute '_asked'", "Lists of the admin"),
    (r"must be a .* instance", "No multi-table inheritance"),
    (r"(Vehicle|Media) or its pk", "No multi-table inheritance"),
    (r"fetch_mode\(", "Fetch modes."),
    (
        r"contenttypes\.|'NoneType' object has no attribute '(all|add)'|user_permissions|groups\)|auth.Permission",
        "Permissions and groups",
    ),
    (r"CustomSession|dynamo_single\.Session|'Manager' object has no attribute 'save'", "Sessions are no model."),
    (r"on django.contrib.sessions", "A session that cannot be written"),
    (r"[Cc]ache table|cache entry", "The cache"),
    (r"select_related\('(\w+)'\): .*prefetch_related\('\1'\) fetches the objects", "`select_related()`"),
    (
        r"FieldDoesNotExist: \w+ has no field named|Error deserializing object|unexpected keyword argument '\w+_set'",
        "Many-to-many relations",
    ),
    (r"Unknown field\(s\)|DoesNotExist: \w+ has no field", "Many-to-many relations"),
    (r"no many-to-many fields", "Many-to-many relations"),
    (r"has no joins|FilteredRelation|__\w+' for values\(\)|Cannot order \S+ by '\w+__", "No joins."),
    (r"means the order of", "No joins."),
    (r"queryset inside a condition|\bExists|Subquery|OuterRef", "Querysets inside conditions."),
    (r"equivalent of the lookup '(i?regex|i?endswith)'", "Lookups without a DynamoDB equivalent."),
    (r"icontains is not|iexact is not|istartswith is not", "Case."),
    (r"(week_day|month|day|hour|minute|second|quarter|week) is not supported", "Parts of dates"),
    (r"extra\(\) is not|raw\(\) is not|alias\(\) is not|turn it into SQL", "No computing while reading."),
    (r"Use Count, Min, Max, Sum, Avg|Expressions in values|an aggregate accepts", "No computing while reading."),
    (r"Ordering by|in a condition is not supported|__abs is not supported", "No computing while reading."),
    (r"adds and subtracts numbers", "Expressions that DynamoDB does not compute."),
    (r"takes keyword arguments only", "Positional constructor arguments"),
    (r"inherits from|_ptr'", "No multi-table inheritance"),
    (r"queries executed|query executed", "One statement is not one request."),
    (
        r"there is no attribute for a|content_object|unexpected keyword argument 'favorite_thing'",
        "Fields of Django, attributes of PynamoDB.",
    ),
    (r"makes? up the primary key, which save\(\) does not change", "`save()` does not change a primary key"),
    (r"was deleted since it was read|No \S+ matches pk=", "A deleted object stays deleted."),
    (r" not found in ", "Errors have texts of their own."),
    (r"ProtectedError not raised|RestrictedError not raised", "References are not checked by DynamoDB."),
)


def proposed(error: str) -> str | None:
    """The line that an error is proposed for."""
    return next((reason for pattern, reason in PROPOSALS if re.search(pattern, error)), None)
