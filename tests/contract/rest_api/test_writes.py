"""Writes through an API: errors, fields and relations."""

from __future__ import annotations

from base64 import b64encode
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import Q
from rest_framework.test import APIClient

from dynamo_single.exceptions import NotSupported
from dynamo_single.testing import assert_requests, capture_requests, fault
from project.chat.models import Message, Server
from project.directory.models import Company, Person
from tests.catalog.models import Order, Sample
from tests.catalog.servers import GameServer, GameTag

pytestmark = [pytest.mark.usefixtures("table"), pytest.mark.urls("tests.contract.rest_api.api")]


def test_missing_object_is_not_found(client: APIClient) -> None:
    assert client.get("/api/companies/nobody/").status_code == 404


def test_taken_key_is_a_conflict(client: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another request is faster than the serializer's validators."""
    Order.objects.create(customer="a", number=1, status="first")
    monkeypatch.setattr("rest_framework.serializers.ModelSerializer.get_validators", lambda self: [])
    response = client.post("/api/orders/", {"customer": "a", "number": 1})
    assert (response.status_code, response.json()["detail"]) == (
        409,
        "An object with this key already exists. Nothing was overwritten.",
    )
    assert Order.objects.get(customer="a", number=1).status == "first"


def test_taken_unique_value_names_its_field(client: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    company = Company.objects.create(name="Acme")
    Person.objects.create(company=company, name="Ann", email="ann@example.com")
    monkeypatch.setattr("rest_framework.serializers.ModelSerializer.include_extra_kwargs", _without_validators)
    values = {"company": company.pk, "name": "Bob", "email": "ann@example.com"}
    response = client.post("/api/people/", values)
    assert (response.status_code, response.json()) == (
        409,
        {"detail": "Another object has this value. Nothing was saved.", "fields": ["email"]},
    )


def _without_validators(_self: Any, options: Any, extra: Any) -> Any:
    return {**options, **extra, **({"validators": []} if "validators" in options else {})}


def test_concurrent_change_returns_stored_object(client: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    company = Company.objects.create(name="Acme")
    save = Company.save

    def late(self: Company, *arguments: Any, **options: Any) -> None:
        Company.objects.filter(pk=self.pk).update(name="Faster")
        save(self, *arguments, condition=Q(name="Acme"), **options)

    monkeypatch.setattr(Company, "save", late)
    response = client.patch(f"/api/companies/{company.pk}/", {"name": "Slower"})
    assert response.status_code == 409
    assert response.json()["detail"] == "Another request changed this object. Nothing was saved."
    assert response.json()["stored"]["name"] == "Faster"


def test_changed_immutable_attribute_names_its_field(client: APIClient) -> None:
    first, second = (Server.objects.create(name=name) for name in "ab")
    message = Message.objects.create(server=first, author="Ann", text="Hello")
    response = client.patch(f"/api/messages/{message.pk}/", {"server": second.pk})
    assert (response.status_code, response.json()) == (
        400,
        {"detail": "This value cannot be changed. Nothing was saved.", "fields": ["server"]},
    )


def test_unsupported_change_names_no_filter(client: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model itself rejects the write."""
    company = Company.objects.create(name="Acme")
    monkeypatch.setattr(Company, "save", _refuse)
    response = client.patch(f"/api/companies/{company.pk}/", {"name": "Other"})
    assert (response.status_code, response.json()) == (400, {"detail": "This request is not supported."})


def _refuse(self: Any, *args: Any, **options: Any) -> None:
    raise NotSupported("Companies keep their names.")


def test_unavailable_table_is_503(client: APIClient) -> None:
    with fault("throttled"):
        response = client.get("/api/companies/c/")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
    assert response.json() == {
        "detail": "The database did not respond. Try again in a moment.",
        "outcome_unknown": False,
    }


def test_lost_answer_says_that_outcome_is_unknown(client: APIClient) -> None:
    with fault("lost answer", operation="PutItem"):
        response = client.post("/api/orders/", {"customer": "a", "number": 1})
    assert (response.status_code, response.json()["outcome_unknown"]) == (503, True)


def test_debug_shows_message(client: APIClient, settings: Any) -> None:
    settings.DEBUG = True
    with fault("unreachable"):
        assert "127.0.0.1" in client.get("/api/companies/c/").json()["message"]


def test_too_large_object_is_a_bad_request(client: APIClient) -> None:
    response = client.post("/api/samples/", {"data": {"text": "x" * 410_000}})
    assert response.status_code == 400, response.content[:300]
    assert not Sample.objects.exists()


VALUES = {
    "text": "ä",
    "integer": 5,
    "number": 1.5,
    "decimal": "1.50",
    "data": {"a": [1, 1.5, "x", None, True], "b": {"c": 10**20}},
    "things": [1, {"a": 0.1}],
    "json": {"deep": [1, 2.5]},
    "words": ["a", "b"],
    "numbers": [1, 2],
}


def test_written_values_are_read_back(client: APIClient) -> None:
    response = client.post("/api/samples/", VALUES)
    assert response.status_code == 201, response.json()
    read = client.get(f"/api/samples/{response.json()['sample_id']}/").json()
    assert {name: read[name] for name in VALUES if name != "numbers"} == {
        name: value for name, value in VALUES.items() if name != "numbers"
    }
    assert [*map(Decimal, read["numbers"])] == [1, 2]


def test_reading_and_writing_back_changes_nothing(client: APIClient) -> None:
    pk = client.post("/api/samples/", VALUES).json()["sample_id"]
    read = client.get(f"/api/samples/{pk}/").json()
    with capture_requests() as sent:
        assert client.put(f"/api/samples/{pk}/", read).status_code == 200
    assert [each.operation for each in sent] == ["GetItem"]


def test_document_with_sets_bytes_and_decimals_is_json(client: APIClient) -> None:
    data = {"set": {"b", "a"}, "bytes": b"\xff", "exact": Decimal("1.5"), "long": Decimal("0.1234567890123456789")}
    sample = Sample.objects.create(data=data, blob=b"\x00\xff")
    read = client.get(f"/api/samples/{sample.pk}/").json()
    assert read["data"] == {
        "set": ["a", "b"],
        "bytes": b64encode(b"\xff").decode(),
        "exact": 1.5,
        "long": "0.1234567890123456789",
    }


def test_empty_set_is_none(client: APIClient) -> None:
    pk = client.post("/api/samples/", VALUES).json()["sample_id"]
    assert client.patch(f"/api/samples/{pk}/", {"words": []}).json()["words"] is None


@pytest.mark.parametrize(
    ("values", "name"),
    [({"words": "x"}, "words"), ({"words": [[1]]}, "words"), ({"integer": "x"}, "integer")],
)
def test_unsuitable_value_names_its_field(client: APIClient, values: Any, name: str) -> None:
    response = client.post("/api/samples/", values)
    assert (response.status_code, [*response.json()]) == (400, [name])


def test_relations_are_written_with_their_object(client: APIClient) -> None:
    tags = [GameTag.objects.create(word=word) for word in ("red", "blue")]
    response = client.post("/api/servers/", {"name": "One", "tags": [tag.pk for tag in tags]})
    server = GameServer.objects.get(pk=response.json()["server_id"])
    assert {tag.word for tag in server.tags.all()} == {"red", "blue"}


def test_relations_are_replaced(client: APIClient) -> None:
    tags = [GameTag.objects.create(word=word) for word in ("red", "blue", "green")]
    server = GameServer.objects.create(name="One")
    server.tags.set(tags[:2])
    response = client.patch(f"/api/servers/{server.pk}/", {"tags": [tags[2].pk]})
    assert response.status_code == 200, response.json()
    assert [tag.word for tag in server.tags.all()] == ["green"]


def test_new_object_with_relations_is_two_requests(client: APIClient) -> None:
    tags = [GameTag.objects.create(word=f"w{n}") for n in range(20)]
    with capture_requests() as sent:
        client.post("/api/servers/", {"name": "One", "tags": [tag.pk for tag in tags]})
    assert [each.operation for each in sent][:2] == ["BatchGetItem", "TransactWriteItems"]


def test_unknown_related_object_is_refused(client: APIClient) -> None:
    with assert_requests(["GetItem"]):
        response = client.post("/api/servers/", {"name": "One", "tags": ["nobody"]})
    assert response.status_code == 400
    assert response.json() == {"tags": ['Invalid pk "nobody" - object does not exist.']}


def test_too_many_related_objects_are_refused(client: APIClient) -> None:
    with assert_requests([]):
        response = client.post("/api/servers/", {"name": "One", "tags": [f"t{n}" for n in range(91)]})
    assert response.json() == {"tags": ["At most 90 objects."]}
