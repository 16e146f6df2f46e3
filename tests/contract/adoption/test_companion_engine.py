"""An engine of a test's own has an adopted table and its companion."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from dynamo_single.table import Table, get_table
from dynamo_single.testing import local_engine
from tests.contract.adoption.conftest import ADOPTED, types
from tests.contract.adoption.test_companion_claims import person
from tests.unit.declaring import forgotten

URL = "dynamodb:///{}?region=eu-west-1"
DECLARED: Any = {
    "default": URL.format("own"),
    ADOPTED: URL.format("theirs") + "&owns=false&companion=default",
    "other": URL.format("other"),
}


@pytest.mark.parametrize("alias", ["default", ADOPTED])
def test_local_engine_has_both_tables(engine: Table, alias: str) -> None:
    with override_settings(DYNAMO_SINGLE=DECLARED), forgotten(), local_engine(alias=alias) as table:
        person().objects.create(name="ann", email="ann@example.com")

        assert table.settings.alias == alias
        assert not get_table(ADOPTED).settings.owns
        assert (types(get_table(ADOPTED)), types(get_table())) == ({"Person": 1}, {"UniqueClaim": 1})
        assert get_table("other").settings.endpoint_url is None
