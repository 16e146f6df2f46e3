"""A small shop, in the table and on SQLite: the same names, the same objects, and keys that an owner would declare."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from django.db import models as sql

from dynamo_single import models
from tests.contract.sqlite import ALIAS
from tests.unit.declaring import declare

#: The first time in the data; one date in every time zone of the tests.
T0 = dt.datetime(2024, 1, 10, 12, tzinfo=dt.UTC)


class Shop:
    """The models of one side by their names, and ``all``, which gives a model's objects."""

    Category: Any
    Tag: Any
    Product: Any
    Customer: Any
    Order: Any
    Line: Any
    Note: Any

    def __init__(self, found: dict[str, Any], gives: Callable[[Any], Any], *, on_sql: bool) -> None:
        self.models, self.all, self.on_sql = found, gives, on_sql
        for name, model in found.items():
            setattr(self, name, model)

    def fill(self) -> None:
        """Write the objects."""
        create = lambda model, **values: self.all(model).create(**values)  # noqa: E731 - a name for a long call
        categories = [create(self.Category, category_id=f"k{n}", name=n_) for n, n_ in enumerate(["Tea", "Cups"])]
        tags = [create(self.Tag, tag_id=name, name=name) for name in ("sale", "new")]
        for n in range(4):
            product = create(
                self.Product,
                product_id=f"p{n}",
                name=["Assam", "Bowl", "Ceylon", "dish"][n],
                category=categories[n % 2],
                price=Decimal(["10.50", "25.00", "4.25", "99.99"][n]),
                stock=[5, 0, 12, 1][n],
                reorder_level=[5, 3, 4, 4][n],
            )
            product.tags.add(*tags[: n % 3])
        customers = [
            create(
                self.Customer,
                customer_id=f"c{n}",
                name=["Ann Lee", "bob", "Cy", "Joanne", "Dee"][n],
                email=f"ann{n}@{'x.org' if n % 2 else 'y.com'}",
                city=["Rome", "Oslo", "Rome", "", "Oslo"][n],
                is_vip=n == 2,
                created=T0 + dt.timedelta(days=10 * n),
            )
            for n in range(5)
        ]
        for n in range(6):
            order = create(
                self.Order,
                order_id=f"o{n}",
                customer=customers[n % 3],
                status=["open", "paid", "sent"][n % 3 if n < 5 else 0],
                placed=T0 + dt.timedelta(days=20 * n),
                total=Decimal(50 * n + 10),
                note=[None, "Gift", "gift wrap"][n % 3],
            )
            for number in range(1, 2 + n % 2):
                create(
                    self.Line,
                    order=order,
                    number=number,
                    product_id=f"p{(n + number) % 4}",
                    qty=n + number,
                    unit_price=Decimal(number * 5),
                )
        for n in range(3):
            create(
                self.Note,
                note_id=f"n{n}",
                data={"price": n, "title": f"T{n}", "in": {"depth": n}},
                raw={"price": n},
                steps=[n, "x"],
                day=T0.date() + dt.timedelta(days=40 * n),
                seen=T0 + dt.timedelta(days=40 * n),
                text=None if n == 0 else f"Text {n}",
                number=n,
            )


def on_sqlite() -> Shop:
    def model(label: str, /, ordering: list[str] | None = None, **fields: Any) -> Any:
        meta = type("Meta", (), {"app_label": "catalog", "ordering": ordering or []})
        return type(f"Sql{label}", (sql.Model,), {"__module__": __name__, "Meta": meta, **fields})

    def pk() -> Any:
        return sql.CharField(max_length=20, primary_key=True)

    def text(**options: Any) -> Any:
        return sql.CharField(max_length=80, **options)

    def money() -> Any:
        return sql.DecimalField(max_digits=12, decimal_places=2)

    category = model("Category", ["name"], category_id=pk(), name=text())
    tag = model("Tag", tag_id=pk(), name=text(unique=True))
    product = model(
        "Product",
        product_id=pk(),
        name=text(),
        category=sql.ForeignKey(category, sql.CASCADE, related_name="products"),
        price=money(),
        stock=sql.IntegerField(default=0),
        reorder_level=sql.IntegerField(default=0),
        tags=sql.ManyToManyField(tag, related_name="products"),
    )
    customer = model(
        "Customer",
        customer_id=pk(),
        name=text(),
        email=sql.EmailField(unique=True),
        city=text(blank=True, default=""),
        is_vip=sql.BooleanField(default=False),
        created=sql.DateTimeField(),
    )
    order = model(
        "Order",
        ["placed"],
        order_id=pk(),
        customer=sql.ForeignKey(customer, sql.CASCADE, related_name="orders"),
        status=text(),
        placed=sql.DateTimeField(),
        total=money(),
        note=text(null=True),
    )
    line = model(
        "Line",
        order=sql.ForeignKey(order, sql.CASCADE, related_name="lines"),
        number=sql.IntegerField(),
        product=sql.ForeignKey(product, sql.CASCADE, related_name="lines"),
        qty=sql.IntegerField(),
        unit_price=money(),
    )
    note = model(
        "Note",
        note_id=pk(),
        data=sql.JSONField(default=dict),
        raw=sql.JSONField(default=dict),
        steps=sql.JSONField(default=list),
        day=sql.DateField(),
        seen=sql.DateTimeField(),
        text=text(null=True),
        number=sql.IntegerField(),
    )
    found = {each.__name__.removeprefix("Sql"): each for each in (category, tag, product, customer, order, line, note)}
    return Shop(found, lambda model: model.objects.using(ALIAS), on_sql=True)


def notes(name: str = "ShopNote", raw: Any = None, **further: Any) -> Any:
    """Create documents and times; ``further`` attributes are those that an alternative declares."""
    return declare(
        name,
        (name.upper() + "#{note_id}", "#METADATA"),
        {"listed": models.IndexKey("gs1", name.upper(), "{note_id}")},
        note_id=models.UnicodeAttribute(),
        data=models.MapAttribute(default=dict),
        raw=raw or models.JSONAttribute(default=dict),
        steps=models.ListAttribute(default=list),
        day=models.DateAttribute(),
        seen=models.TimestampAttribute(),
        text=models.UnicodeAttribute(null=True),
        number=models.IntegerAttribute(),
        **further,
    )


def orders(customer: Any, name: str = "ShopOrder", related: str = "orders", **further: Any) -> Any:
    """Orders of customers, listed by the time, by the customer and by the status."""
    kind = name.upper()
    return declare(
        name,
        (kind + "#{order_id}", "#METADATA"),
        {
            "listed": models.IndexKey("gs1", kind, "{placed}#{order_id}"),
            "by_customer": models.IndexKey("gs2", kind + "OF#{customer_id}", "{placed}#{order_id}"),
            "by_status": models.IndexKey("gs3", kind + "#{status}", "{placed}#{order_id}"),
        },
        options={"ordering": ["placed"]},
        order_id=models.UnicodeAttribute(),
        customer=models.ReferenceAttribute(customer, on_delete=models.CASCADE, related_name=related),
        status=models.UnicodeAttribute(choices=[("open", "Open"), ("paid", "Paid"), ("sent", "Sent")]),
        placed=models.TimestampAttribute(),
        total=models.DecimalAttribute(max_digits=12, decimal_places=2),
        note=models.UnicodeAttribute(null=True, blank=True),
        **further,
    )


def customers(name: str = "ShopCustomer", keys: dict[str, Any] | None = None, **further: Any) -> Any:
    """Customers, listed by their names."""
    kind = name.upper()
    return declare(
        name,
        (kind + "#{customer_id}", "#METADATA"),
        {"listed": models.IndexKey("gs1", kind, "{name}#{customer_id}"), **(keys or {})},
        customer_id=models.UnicodeAttribute(),
        name=models.UnicodeAttribute(),
        email=models.EmailAttribute(unique=True),
        city=models.UnicodeAttribute(blank=True, default=""),
        is_vip=models.BooleanAttribute(default=False),
        created=models.TimestampAttribute(),
        **further,
    )


def on_dynamodb() -> Shop:
    category = declare(
        "ShopCategory",
        ("SHOPCATEGORY#{category_id}", "#METADATA"),
        {"listed": models.IndexKey("gs1", "SHOPCATEGORY", "{name}#{category_id}")},
        options={"ordering": ["name"]},
        category_id=models.UnicodeAttribute(),
        name=models.UnicodeAttribute(),
    )
    tag = declare(
        "ShopTag",
        ("SHOPTAG#{tag_id}", "#METADATA"),
        {"listed": models.IndexKey("gs1", "SHOPTAG", "{tag_id}")},
        tag_id=models.UnicodeAttribute(),
        name=models.UnicodeAttribute(unique=True),
    )
    product = declare(
        "ShopProduct",
        ("SHOPPRODUCT#{product_id}", "#METADATA"),
        {
            "listed": models.IndexKey("gs1", "SHOPPRODUCT", "{name}#{product_id}"),
            "by_category": models.IndexKey("gs2", "SHOPPRODUCTOF#{category_id}", "{name}#{product_id}"),
        },
        product_id=models.UnicodeAttribute(),
        name=models.UnicodeAttribute(),
        category=models.ReferenceAttribute(category, on_delete=models.CASCADE, related_name="products"),
        price=models.DecimalAttribute(max_digits=12, decimal_places=2),
        stock=models.IntegerAttribute(default=0),
        reorder_level=models.IntegerAttribute(default=0),
        tags=models.ManyToMany("catalog.ShopTag", related_name="products"),
    )
    customer = customers(bought=models.Children("ShopOrder"))
    order = orders(customer)
    line = declare(
        "ShopLine",
        ("SHOPORDER#{order_id}", "LINE#{number}"),
        {
            "listed": models.IndexKey("gs1", "SHOPLINE", "{order_id}#{number}"),
            "by_product": models.IndexKey("gs2", "SHOPLINEOF#{product_id}", "{order_id}#{number}"),
        },
        order=models.ReferenceAttribute(order, on_delete=models.CASCADE, related_name="lines"),
        number=models.IntegerAttribute(),
        product=models.ReferenceAttribute(product, on_delete=models.CASCADE, related_name="lines"),
        qty=models.IntegerAttribute(),
        unit_price=models.DecimalAttribute(max_digits=12, decimal_places=2),
    )
    found = {
        each.__name__.removeprefix("Shop"): each for each in (category, tag, product, customer, order, line, notes())
    }
    return Shop(found, lambda model: model.objects.all(), on_sql=False)
