"""The traced operations: the preparation of each, and the operation itself.

The operations use only public names, so that different commits can be compared. Identifiers are fixed, because some
walks depend on the beginning of a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from django.apps import apps
from django.contrib.auth import get_user_model
from django.test import Client

from benchmarks.walks.models import Memo
from project.directory.models import Company

#: Prepares one operation, any number of times. Only the returned function is traced.
Prepare = Callable[[], Callable[[], Any]]

PASSWORD = "a walk in the park"  # noqa: S105 - of a user in a table in memory
LISTED = 100
MEMO = "memo-3f0d2a54-7d2b-4c1e-9a0e-5b8f6c7d1e22"
COMPANY = "company-3f0d2a54-7d2b-4c1e-9a0e-5b8f6c7d1e22"
PRODUCT = "product-3f0d2a54-7d2b-4c1e-9a0e-5b8f6c{:06d}"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that is frequent in a project."""

    name: str
    prepare: Prepare


def operations() -> Iterator[Operation]:
    """Yield the operations of the installed apps: the demo's, and the tests' if ``tests.catalog`` is installed."""
    yield from _of_a_plain_model()
    yield from _of_the_demo()
    if apps.is_installed("tests.catalog"):
        yield from _of_the_catalog()


def _of_a_plain_model() -> Iterator[Operation]:
    memo = Memo.objects.create(memo_id=MEMO, title="Walkers", text="On foot.")
    values = count()

    def save() -> Callable[[], Any]:
        memo.text = f"W{next(values)}"
        return memo.save

    def update(text: str) -> None:
        Memo.objects.filter(pk=memo.pk).update(text=text)

    def create(**more: Any) -> Memo:
        return Memo.objects.create(title="Others", text="By bus.", **more)

    yield Operation("get(pk=), Memo", lambda: lambda: Memo.objects.get(pk=memo.pk))
    yield Operation("filter(title=) to an object, Memo", lambda: lambda: list(Memo.objects.filter(title="Walkers")))
    yield Operation("save() of one attribute, Memo", save)
    yield Operation("save(update_fields=) of one, Memo", lambda: partial(save(), update_fields=["text"]))
    yield Operation("update() of one key, Memo", lambda: partial(update, f"W{next(values)}"))
    yield Operation("soft delete, Memo", lambda: create().delete)
    yield Operation("hard_delete() of one key, Memo", lambda: Memo.objects.filter(pk=create().pk).hard_delete)
    yield Operation("create(), Memo", lambda: create)


def _of_the_demo() -> Iterator[Operation]:
    company = Company.objects.create(company_id=COMPANY, name="Walkers")
    values = count()

    def save(**options: Any) -> Callable[[], Any]:
        company.stock = f"W{next(values)}"
        return lambda: company.save(**options)

    yield Operation("get(pk=), Company", lambda: lambda: Company.objects.get(pk=company.pk))
    yield Operation("filter(name=) to an object, Company", lambda: lambda: list(Company.objects.filter(name="Walkers")))
    yield Operation("save() of one attribute, Company", save)
    yield Operation("save(update_fields=) of one, Company", lambda: save(update_fields=["stock"]))
    get_user_model().objects.create_user("walker", "walker@example.com", PASSWORD)
    yield Operation("login, a POST of the login page", _login)


def _login() -> Callable[[], Any]:
    client = Client(SERVER_NAME="localhost")

    def login() -> None:
        answer = client.post("/accounts/login/", {"username": "walker", "password": PASSWORD})
        if answer.status_code != 302:
            raise RuntimeError("The login was refused.")

    return login


def _of_the_catalog() -> Iterator[Operation]:
    # Use names, because the models cannot be imported if their app is not installed.
    Firm, Order, Product = (apps.get_model("catalog", name) for name in ("Firm", "Order", "Product"))
    firm = Firm.objects.create(firm_id="f1", name="Walkers", stock="W")
    values = count()

    def save(**options: Any) -> Callable[[], Any]:
        firm.stock = f"W{next(values)}"
        return lambda: firm.save(**options)

    def create() -> Callable[[], Any]:
        identifier = f"firm{next(values)}"
        return lambda: Firm.objects.create(firm_id=identifier, name="Walkers", stock="W")

    yield Operation("get(pk=), Firm (plain)", lambda: lambda: Firm.objects.get(pk=firm.pk))
    yield Operation("save() of one attribute, Firm (plain)", save)
    yield Operation("save(update_fields=) of one, Firm (plain)", lambda: save(update_fields=["stock"]))
    yield Operation("create(), Firm (plain)", create)
    yield Operation(
        "soft delete without children, Product",
        lambda: Product.objects.create(product_id=PRODUCT.format(next(values))).delete,
    )
    for number in range(LISTED):
        Order.objects.create(customer="walker", number=number, total=number)
    yield Operation(f"list of {LISTED} objects, Order", lambda: lambda: list(Order.objects.filter(customer="walker")))
