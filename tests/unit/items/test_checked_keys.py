"""``full_clean()`` rejects invalid keys of an object."""

from __future__ import annotations

import pytest

from dynamo_single import models
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.items.encode import check_keys
from tests.unit.declaring import declare, forgotten


def test_a_key_with_a_missing_part_hides_no_other_key() -> None:
    """The second key is too long whatever the first one lacks; the save would refuse it."""
    with forgotten():
        keys = {
            "by_title": models.IndexKey("gs1", "SHELF", "{title}"),
            "by_place": models.IndexKey("gs2", "PLACE", "{place}"),
        }
        attributes = {"title": models.UnicodeAttribute(), "place": models.UnicodeAttribute()}
        model = declare("Shelf", ("SHELF#{slot}", "#METADATA"), keys, slot=models.UnicodeAttribute(), **attributes)
        with pytest.raises(InvalidValue, match=r"1024"):
            check_keys(model(slot="a", title="", place="x" * 2000))
