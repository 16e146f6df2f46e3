"""botocore's sessions share expensive parts, but no changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from botocore import UNSIGNED

from dynamo_single.table.http.credentials import new_client, new_session

OPTIONS = {"region_name": "us-east-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"}


@pytest.mark.parametrize("number", [1, 2])
def test_a_session_has_botocores_handlers(number: int) -> None:
    """For example, the handler of a web identity's role leaves its request unsigned."""
    session = [new_session() for _ in range(number)][-1]
    events = session.get_component("event_emitter")
    answers = events.emit("choose-signer.sts.AssumeRoleWithWebIdentity", signing_name="sts", context={})
    assert UNSIGNED in [answer for _, answer in answers]


def test_what_is_registered_with_one_session_is_not_the_others() -> None:
    """Each has handlers of its own."""
    first, second = new_session(), new_session()
    first.register("an-event", lambda **_: "heard")
    assert [answer for _, answer in first.get_component("event_emitter").emit("an-event")] == ["heard"]
    assert second.get_component("event_emitter").emit("an-event") == []


def test_the_service_is_read_from_its_files_once() -> None:
    """Clients of two sessions know it from the same reader."""
    sessions = new_session(), new_session()
    for session in sessions:
        new_client(session, **OPTIONS)
    first, second = (session.get_component("data_loader") for session in sessions)
    assert first is second


def test_other_folders_have_another_reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``AWS_DATA_PATH`` counts when a client is created."""
    new_client(first := new_session(), **OPTIONS)
    monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))
    new_client(second := new_session(), **OPTIONS)
    assert str(tmp_path) in second.get_component("data_loader").search_paths
    assert str(tmp_path) not in first.get_component("data_loader").search_paths
