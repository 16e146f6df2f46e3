"""model_bakery makes objects of models with every class of attributes."""

from __future__ import annotations

import pytest
from django.utils.module_loading import import_string
from model_bakery import baker

from dynamo_single.contrib.model_bakery import GENERATORS
from tests.catalog.studios import Artist, Painting

pytestmark = pytest.mark.usefixtures("table")


@pytest.mark.parametrize("path", sorted({*GENERATORS.values()}))
def test_path_of_generator_imports(path: str) -> None:
    assert callable(import_string(path))


def test_object_has_the_copy_of_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django.conf.settings.BAKER_CUSTOM_FIELDS_GEN", GENERATORS, raising=False)
    artist = baker.make(Artist, name="Ann")
    assert baker.make(Painting, artist=artist).artist_name == "Ann"
