"""Any sequence of bulk creations, with errors, throttled statements, lost responses and lost permissions.

After each call, the table matches the objects and the errors, and nothing else has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from dynamo_single.exceptions import AlreadyExists, BulkError, DynamoSingleError, OutcomeUnknown, Throttled
from dynamo_single.table import Table, get_table
from dynamo_single.testing import fault
from project.directory.models import Company
from tests.contract.inserting import INSERTS, answered
from tests.contract.robustness.machine_world import PHASES
from tests.deep import examples

#: More than two batches.
NUMBERS = st.lists(st.integers(0, 69), min_size=2, max_size=60, unique=True)
CODES = ["ThrottlingError", "InternalServerError", "InternalServerError!", "TransactionConflict"]
#: The outcome of each statement of a request, by the last digit of the key.
REQUEST = st.dictionaries(st.sampled_from("0123456789"), st.sampled_from(CODES), max_size=3)
#: Faults of whole requests: at most two, so that a retry of the operation ends them.
WHOLE = st.sampled_from(["", "", "lost answer", "throttled", "denied", "server error"])
MODES = st.sampled_from(["plain", "ignore", "update"])


class Creations(RuleBasedStateMachine):
    """Companies by their number: the name of each stored one, and whether it is in the trash."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[str, tuple[str, bool]] = {}
        self.names = 0
        get_table().takes_statements = True

    @rule(
        numbers=NUMBERS,
        mode=MODES,
        requests=st.lists(REQUEST, max_size=6),
        denied=st.integers(0, 12),
        whole=WHOLE,
        size=st.sampled_from([None, 7, 1]),
    )
    def create(
        self, numbers: list[int], mode: str, requests: list[Mapping[str, str]], denied: int, whole: str, size: Any
    ) -> None:
        """Create companies, of which some exist, while DynamoDB fails."""
        self.names += 1
        name, before = f"name {self.names}", dict(self.stored)
        given = [Company(company_id=f"c{number:02d}", name=name) for number in numbers]
        lost = [{}] * denied + [{str(n): "AccessDenied" for n in range(10)}] if denied < 4 else []
        failed: Mapping[Any, Exception] = {}
        with ExitStack() as faults:
            faults.enter_context(answered(*requests, *lost))
            if whole:
                faults.enter_context(fault(whole, operation=INSERTS, times=2))
            try:
                made = Company.objects.bulk_create(
                    given,
                    batch_size=size,
                    ignore_conflicts=mode == "ignore",
                    update_conflicts=mode == "update",
                    update_fields=["name"] if mode == "update" else None,
                )
                assert {obj.pk for obj in made.skipped} == (
                    {obj.pk for obj in given if obj.pk in before} if mode == "ignore" else set()
                )
            except BulkError as error:
                failed = error.failed
                assert {*error.written} == {obj.pk for obj in given if not obj._state.adding}
                assert {*error.written, *error.failed, *error.not_tried} >= {
                    obj.pk for obj in given if obj.pk not in before
                }
            except AlreadyExists:
                # The only failure: the others of its request were not tried.
                assert mode == "plain"
                assert not {obj.pk for obj in given}.isdisjoint(before)
            except DynamoSingleError as error:
                failed = {obj.pk: error for obj in given}
        self.compare(given, before, failed, mode)

    def compare(self, given: list[Any], before: Mapping[str, Any], failed: Mapping[Any, Exception], mode: str) -> None:
        """Check that each object's state matches the table."""
        found = {obj.pk: (obj.name, False) for obj in Company.objects.all()}
        found |= {obj.pk: (obj.name, True) for obj in Company.deleted_objects.all()}
        self.stored = dict(before)
        for obj in given:
            error = failed.get(obj.pk)
            if not obj._state.adding:
                assert obj.pk not in before or mode == "update", obj.pk
                self.stored[obj.pk] = obj.name, False
            elif isinstance(error, OutcomeUnknown) and obj.pk not in before and obj.pk in found:
                self.stored[obj.pk] = obj.name, False
            elif isinstance(error, AlreadyExists):
                assert obj.pk in before
            else:
                assert error is None or isinstance(error, OutcomeUnknown | Throttled | AlreadyExists), error
        assert found == self.stored

    @rule(number=st.integers(0, 69), hard=st.booleans())
    def delete(self, number: int, hard: bool) -> None:
        """Delete a company, softly or permanently."""
        found = Company.objects.filter(pk=f"c{number:02d}").first()
        if found is None:
            return
        if hard:
            found.hard_delete()
            del self.stored[found.pk]
        else:
            found.delete()
            self.stored[found.pk] = found.name, True

    @rule()
    def grant(self) -> None:
        """Another process begins, which has the right."""
        get_table().takes_statements = True

    def teardown(self) -> None:
        """The next history begins with an empty table."""
        for pk in self.stored:
            Company.all_objects.get(pk=pk).hard_delete()
        get_table().takes_statements = True


def test_bulk_creations_report_what_is_stored(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """This applies to any failure at any time."""
    monkeypatch.setattr("dynamo_single.table.table.LONGEST_PAUSE", 0.0)
    monkeypatch.setattr("dynamo_single.table.batches.LONGEST_PAUSE", 0.0)
    budget = settings(
        max_examples=examples(6, 200),
        stateful_step_count=12,
        deadline=None,
        phases=PHASES,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Creations, settings=budget)
