"""If Django's ``transaction.atomic()`` fails after writes to DynamoDB, they stay, and a warning reports them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
from django.db import connection, transaction

from dynamo_single import transactions
from dynamo_single.exceptions import AlreadyExists, ConfigurationError, NotRolledBack, NotRolledBackWarning
from tests.catalog.models import Firm

pytestmark = pytest.mark.usefixtures("table")


def create(firm_id: str) -> None:
    """Write one object."""
    Firm.objects.create(firm_id=firm_id, name="n", stock="s")


@pytest.fixture
def strict() -> Iterator[None]:
    """The option that makes it an error."""
    options = connection.settings_dict["OPTIONS"]
    options["rollback_after_writes"] = "error"
    try:
        yield
    finally:
        del options["rollback_after_writes"]


def test_a_rollback_after_writes_is_a_warning() -> None:
    """The block's error continues, and the items stay."""
    warned = pytest.warns(NotRolledBackWarning, match="after 2 writes to DynamoDB")
    with warned, pytest.raises(KeyError), transaction.atomic():
        create("a")
        create("b")
        raise KeyError("x")
    assert Firm.objects.filter(pk="a").exists()


def test_a_rollback_after_writes_can_be_an_error(strict: None) -> None:
    """The error that failed the block is its context."""
    with pytest.raises(NotRolledBack, match="are kept") as raised, transaction.atomic():
        create("a")
        raise KeyError("x")
    assert isinstance(raised.value.__context__, KeyError)
    assert connection.get_autocommit()


def test_an_inner_block_reports_its_own_writes_once() -> None:
    """Earlier writes are not rolled back, and the outer block has no further report."""
    with warnings.catch_warnings(record=True) as caught, transaction.atomic():
        warnings.simplefilter("always")
        create("a")
        with pytest.raises(KeyError), transaction.atomic():
            create("b")
            raise KeyError("x")
    assert [str(each.message).split(" to ")[0] for each in caught] == [
        "transaction.atomic() has rolled back after 1 writes"
    ]


@pytest.mark.filterwarnings("error")
def test_a_block_that_is_carried_out_reports_nothing() -> None:
    """This includes a block that failed before a write, after a read, or after a rejected write."""
    with transaction.atomic():
        create("a")
    with pytest.raises(AlreadyExists), transaction.atomic():
        assert Firm.objects.get(pk="a").name == "n"
        create("a")
    create("b")
    with pytest.raises(KeyError), transaction.atomic():
        raise KeyError("x")


@pytest.mark.filterwarnings("error")
def test_what_was_not_sent_yet_is_really_rolled_back() -> None:
    """A block of ours within it has written nothing."""
    with pytest.raises(KeyError), transaction.atomic(), transactions.atomic():
        create("a")
        raise KeyError("x")
    assert not Firm.objects.filter(pk="a").exists()


def test_set_rollback_counts_as_a_failure() -> None:
    """A view that marks its transaction for rollback keeps its items all the same."""
    with pytest.warns(NotRolledBackWarning), transaction.atomic():
        create("a")
        transaction.set_rollback(True)


def test_an_option_that_there_is_not_is_refused() -> None:
    """The error is raised when the connection opens, with the alias."""
    wrong = connection.copy()
    wrong.settings_dict["OPTIONS"] = {"rollback_after_writes": "ignore"}
    with pytest.raises(ConfigurationError, match=r"DATABASES\['default'\]"):
        wrong.connect()
