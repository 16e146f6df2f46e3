"""A hundred models of ours, with the attributes of ``plain`` and two keys each."""

from __future__ import annotations

from dynamo_single import models

for _number in range(100):
    _name = f"Ours{_number}"
    globals()[_name] = type(models.Model)(
        _name,
        (models.TimestampedModel, models.SoftDeleteModel),
        {
            "__module__": __name__,
            "key": models.IdAttribute(),
            "name": models.UnicodeAttribute(max_length=20),
            "email": models.EmailAttribute(unique=True),
            "number": models.IntegerAttribute(default=0),
            "Keys": type(
                "Keys",
                (),
                {
                    "primary": models.Key(f"OURS{_number}#{{key}}", "#METADATA"),
                    "by_name": models.IndexKey("gs1", f"OURS{_number}", "{name}#{key}"),
                },
            ),
        },
    )
