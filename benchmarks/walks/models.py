"""The model whose walks a test limits: plain, with a trash, two strings and one index."""

from __future__ import annotations

from dynamo_single import models


class Memo(models.SoftDeleteModel):
    """A note with a title, which orders it in a key."""

    memo_id = models.IdAttribute(prefix="memo")
    title = models.UnicodeAttribute()
    text = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("MEMO#{memo_id}", "#METADATA")
        by_title = models.IndexKey("gs1", "MEMO", "{title}#{memo_id}")
