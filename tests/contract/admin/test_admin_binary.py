"""Binary attributes in the admin: their size, downloads for permitted users, and uploads if editable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.sites import all_sites
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import path

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from tests.catalog.models import Sample
from tests.contract.conftest import Pages, text_of

BYTES = b"\x00\xff<script>"
ADD, CHANGE, DOWNLOAD = "catalog/sample/add/", "catalog/sample/one/change/", "catalog/sample/one/binary/blob/"


class SampleAdmin(DynamoModelAdmin):
    """The bytes among few other fields; only some tests make them editable."""

    fields = ("text", "blob")


site = DynamoAdminSite()
site.register(Sample, SampleAdmin)
all_sites.discard(site)  # the checks look at all of them
urlpatterns = [path("admin/", site.urls)]


@pytest.fixture
def _editable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms have the bytes."""
    monkeypatch.setattr(Sample._meta.get_field("blob"), "editable", True)


def stored() -> Any:
    """The bytes of the sample."""
    return Sample.objects.get(pk="one").blob


def test_what_cannot_be_edited_is_shown_by_its_size(catalog: Pages) -> None:
    """The page shows the size with a link instead of the bytes."""
    Sample.objects.create(sample_id="one", blob=BYTES)
    page = catalog.get(CHANGE)
    assert f'<a href="/admin/{DOWNLOAD}">10 bytes</a>' in page.content.decode()
    assert 'type="file"' not in page.content.decode()
    assert catalog.get(ADD).status_code == 200


def test_a_download_is_a_file_of_no_known_type(catalog: Pages) -> None:
    """A GetItem returns exactly the bytes as a type that no browser displays."""
    Sample.objects.create(sample_id="one", blob=BYTES)
    answer = catalog.get(DOWNLOAD, sends=["GetItem"])
    assert answer.content == BYTES
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="one-blob.bin"'
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("address", ["one/binary/text/", "one/binary/x/", "two/binary/blob/", "one/binary/blob/x/"])
def test_there_is_no_other_download(catalog: Pages, address: str) -> None:
    """Other attributes and missing values have no download."""
    Sample.objects.create(sample_id="one", text="x")
    assert catalog.get(f"catalog/sample/{address}").status_code in {302, 404}
    assert catalog.get(DOWNLOAD).status_code == 404


def test_what_the_page_does_not_show_is_not_downloaded(catalog: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """An admin without the attribute keeps it to itself."""
    Sample.objects.create(sample_id="one", blob=BYTES)
    monkeypatch.setattr(SampleAdmin, "fields", ("text",))
    assert catalog.get(DOWNLOAD).status_code == 404


@pytest.mark.parametrize(
    ("permission", "status"),
    [("catalog.view_sample", 200), ("catalog.change_sample", 200), ("catalog.delete_sample", 403), ("", 403)],
)
def test_a_download_asks_for_the_permission_to_view(
    catalog: Pages, staff: Callable[..., Pages], permission: str, status: int
) -> None:
    """The download requires the model's view permission."""
    Sample.objects.create(sample_id="one", blob=BYTES)
    assert staff(*([permission] if permission else [])).get(DOWNLOAD).status_code == status


def test_who_may_only_look_sees_the_size(catalog: Pages, staff: Callable[..., Pages]) -> None:
    """And the link."""
    Sample.objects.create(sample_id="one", blob=BYTES)
    assert f'<a href="/admin/{DOWNLOAD}">10 bytes</a>' in staff("catalog.view_sample").get(CHANGE).content.decode()


@pytest.mark.usefixtures("_editable")
def test_a_file_is_uploaded(catalog: Pages) -> None:
    """An upload stores its bytes; without a file, the bytes stay, and a checkbox clears them."""
    Sample.objects.create(sample_id="one")
    upload = {"text": "x", "blob": SimpleUploadedFile("a.bin", BYTES)}
    assert catalog.post(CHANGE, upload, sends=["GetItem", "TransactWriteItems"]).status_code == 302
    assert stored() == BYTES
    page = catalog.get(CHANGE).content.decode()
    assert 'enctype="multipart/form-data"' in page
    assert '<a href="../binary/blob/">10 bytes</a>' in page
    catalog.post(CHANGE, {"text": "y"})
    assert stored() == BYTES
    catalog.post(CHANGE, {"text": "y", "blob-clear": "on"})
    assert stored() is None


@pytest.mark.usefixtures("_editable")
def test_the_history_has_the_size(catalog: Pages) -> None:
    """Not the bytes."""
    Sample.objects.create(sample_id="one", blob=b"x")
    catalog.post(CHANGE, {"text": "", "blob": SimpleUploadedFile("a.bin", BYTES)})
    assert 'Blob: from "1 byte" to "10 bytes"' in text_of(catalog.get("catalog/sample/one/history/"))


@pytest.mark.usefixtures("_editable")
def test_a_file_that_no_item_holds_is_the_fields_error(catalog: Pages) -> None:
    """The form does not read a file that is too large for an item."""
    answer = catalog.post(ADD, {"blob": SimpleUploadedFile("a.bin", b"x" * 409_601)})
    assert answer.context_data["adminform"].form.errors == {
        "blob": ["The file has 409601 bytes; a DynamoDB item can have at most 409600."]
    }
    assert not Sample.objects.all().exists()
