"""Models for the differential test: the same attributes under every kind of keys, in a table of their own."""

from __future__ import annotations

from itertools import product
from typing import Any

from dynamo_single import models

#: Primary keys; each model has a partition prefix of its own.
PRIMARIES = (
    ("{name}#{{shelf}}", "ENTRY#{{slot}}"),
    ("{name}#{{slot}}", "{{shelf}}#X"),
    ("{name}#{{shelf}}#{{slot}}", "#METADATA"),
    ("{name}", "{{slot}}#{{shelf}}"),
    ("{name}#{{shelf}}", "{{slot}}"),
)
#: Index keys; their partitions are shared by all models, as in a careless project.
INDEXES: tuple[dict[str, models.IndexKey], ...] = (
    {},
    {
        "by_title": models.IndexKey("gs1", "ENTRY", "{title}#{shelf}#{slot}"),
        "by_score": models.IndexKey("gs2", "SCORE#{shelf}", "{score}#{slot}"),
    },
    {
        "by_title": models.IndexKey("gs1", "T#{title}", "{slot}#{shelf}"),
        "by_time": models.IndexKey("gs2", "SEEN", "{seen_at}#{slot}#{shelf}"),
    },
    {
        "listing": models.IndexKey("gs1", "LISTING", "{shelf}#{slot}"),
        "by_slot": models.IndexKey("gs2", "{slot}", "{title}#{shelf}"),
    },
)


def declare(number: int, primary: tuple[str, str], indexes: dict[str, models.IndexKey]) -> Any:
    """A model; every second one has soft delete, every third one items that expire."""
    name = f"Kind{number}"
    partition, sort = (template.format(name=name) for template in primary)
    keys = {"primary": models.Key(partition, sort), **indexes}
    attributes: dict[str, Any] = {
        "shelf": models.UnicodeAttribute(),
        "slot": models.IntegerAttribute(),
        "title": models.UnicodeAttribute(null=True),
        "score": models.DecimalAttribute(null=True),
        "seen_at": models.TimestampAttribute(null=True),
    }
    if number % 3 == 0:
        attributes["expires_at"] = models.TTLAttribute()
    meta = type("Meta", (), {"app_label": "catalog", "table": "kinds"})
    namespace = {"__module__": __name__, "Keys": type("Keys", (), keys), "Meta": meta, **attributes}
    return type(name, (models.SoftDeleteModel if number % 2 == 0 else models.Model,), namespace)


KINDS: tuple[Any, ...] = tuple(declare(number, *both) for number, both in enumerate(product(PRIMARIES, INDEXES)))
