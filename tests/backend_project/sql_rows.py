"""Uses foreign keys of SQL models to models in DynamoDB, and prints what came of it as JSON: ``-m ... STEP``."""

import json
import sys
from typing import Any

import django
from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.test import Client
from django.test.utils import setup_test_environment


def reading() -> Any:
    """Return the results of references, and their requests."""
    from dynamo_single.testing import capture_requests
    from project.directory.models import Company, Person
    from tests.backend_project.parcels.models import Parcel, Visit

    acme = Company.objects.create(company_id="acme", name="Acme")
    ann = Person.objects.create(company=acme, person_id="ann", name="Ann")
    for _ in range(2):
        Parcel.objects.create(company=acme)
    Visit.objects.create(company=acme, person=ann)
    found: dict[str, Any] = {}

    def note(name: str, ask: Any) -> None:
        with capture_requests() as sent:
            value = ask()
        found[name] = [value, [each.operation for each in sent]]

    note("column", lambda: Visit.objects.values_list("company_id", "person_id").get())
    note("object", lambda: Parcel.objects.all()[0].company.name)
    note("two parts", lambda: Visit.objects.get().person.name)
    note("by object", lambda: Parcel.objects.filter(company=acme).count())
    note("by pk", lambda: Parcel.objects.filter(company__pk="acme").count())
    note("other side", lambda: acme.parcels.count())
    note("select_related", lambda: [each.company.name for each in Parcel.objects.select_related("company")])
    note("select_related()", lambda: Visit.objects.select_related().get().person.name)
    note("prefetch_related", lambda: [each.company.name for each in Parcel.objects.prefetch_related("company")])
    note("prefetched", lambda: [len(each.parcels.all()) for each in Company.objects.prefetch_related("parcels")])
    note("join", lambda: raised(lambda: Parcel.objects.filter(company__name="Acme").count()))
    note("from our side", lambda: raised(lambda: Company.objects.filter(parcels__id=1).count()))
    alone = Company.objects.create(company_id="alone", name="Alone")
    Parcel.objects.create(company=alone)
    note("moved", lambda: raised(lambda: alone.move(company_id="other")))
    return found


def raised(function: Any) -> str:
    """The error that a call ends with."""
    try:
        return repr(function())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def rows() -> dict[str, list[Any]]:
    """Return the contents of SQL."""
    from tests.backend_project.parcels.models import Invoice, Label, Parcel, Token, Visit

    return {
        "parcels": [*Parcel.objects.values_list("company_id", flat=True)],
        "labels": [*Label.objects.values_list("parcel__company_id", flat=True)],
        "invoices": [*Invoice.objects.values_list("company_id", flat=True)],
        "visits": [*Visit.objects.values_list("company_id", "person_id").order_by("pk")],
        "tokens": [*Token.objects.values_list("user_id", flat=True)],
    }


def deleting() -> Any:
    """Return the remaining rows after each way of deletion."""
    from django.contrib.auth import get_user_model

    from dynamo_single import transactions
    from dynamo_single.orm.schema.fields.base import relations_from_sql
    from project.directory.models import Company, Person
    from tests.backend_project.parcels.models import Invoice, Label, Parcel, Token, Visit

    users = get_user_model()._default_manager
    found: dict[str, Any] = {}

    def made(name: str) -> Any:
        company = Company.objects.create(company_id=name, name=name)
        Label.objects.create(parcel=Parcel.objects.create(company=company))
        person = Person.objects.create(company=company, person_id=name, name=name)
        Visit.objects.create(company=company, person=person)
        Visit.objects.create(company=company)
        return company

    made("stays")
    acme = made("acme")
    acme.delete()
    found["in the trash"] = rows()
    acme.hard_delete()
    found["for good"] = rows()
    made("many")
    found["many"] = [Company.objects.filter(company_id="many").hard_delete()[1], rows()]
    held = made("held")
    invoice = Invoice.objects.create(company=held)
    found["protected"] = [raised(held.hard_delete), Company.objects.filter(pk="held").exists(), rows()]
    invoice.delete()
    block = made("block")

    def failing() -> None:
        with transactions.atomic():
            block.hard_delete()
            raise ValueError("stop")

    raised(failing)
    found["discarded"] = [Company.objects.filter(pk="block").exists(), rows()["parcels"]]
    block = Company.objects.get(pk="block")
    with transactions.atomic():
        block.hard_delete()
    found["in a block"] = [Company.objects.filter(pk="block").exists(), rows()["parcels"]]
    user = users.create_user("Ann", "ann@example.com", "secret")
    Token.objects.create(key="k", user=user)
    found["other side"] = user.token.key
    user.delete()
    found["user"] = [rows()["tokens"], [each.related_model._meta.label for each in relations_from_sql(type(user))]]
    awaited = made("awaited")
    async_to_sync(awaited.ahard_delete)()
    found["awaited"] = [Company.objects.filter(pk="awaited").exists(), rows()]

    class Late(Company):
        """A proxy that is declared after the reference to its model."""

        class Meta:
            proxy = True
            app_label = "parcels"

    made("proxied")
    Late.objects.get(pk="proxied").hard_delete()
    found["proxy"] = [Company.objects.filter(pk="proxied").exists(), rows()]
    stale = made("stale")
    found["refused"] = [
        raised(lambda: stale.hard_delete(condition=Company.name == "another")),
        rows()["parcels"],
    ]
    return found


def admin() -> Any:
    """Return the admin's responses for an SQL model that refers to users."""
    from django.contrib import admin as site
    from django.contrib.auth import get_user_model

    from project.directory.models import Company
    from tests.backend_project.parcels.models import Invoice, Token

    user = get_user_model()._default_manager.create_superuser("root", "root@example.com", "secret")
    Token.objects.create(key="k", user=user)
    site.site.register(Token, list_display=("key", "user"), autocomplete_fields=("user",))
    client = Client()
    client.force_login(user)
    pages = ("parcels/token/", "parcels/token/k/change/", "parcels/token/k/delete/", "parcels/token/add/")
    found: dict[str, Any] = {page: client.get(f"/admin/{page}").status_code for page in pages}
    other = get_user_model()._default_manager.create_user("Ann", "ann@example.com", "secret")
    found["added"] = client.post("/admin/parcels/token/add/", {"key": "l", "user": other.pk}).status_code
    found["unknown"] = client.post("/admin/parcels/token/add/", {"key": "m", "user": "nobody"}).status_code
    found["list"] = "Ann" in client.get("/admin/parcels/token/").content.decode()
    found["rows"] = sorted(Token.objects.values_list("key", flat=True))
    page = client.get(f"/admin/accounts/user/{other.pk}/delete/").content.decode()
    found["deletion names the row"] = "Token: <a" in page or "Token: l" in page
    company = Company.objects.create(company_id="c", name="Acme")
    Invoice.objects.create(company=company)
    company.delete()
    page = client.post("/admin/directory/company/c/delete/", {"post": "yes"}).content.decode()
    found["protected"] = ["Invoice: Invoice 1" in page, Company.all_objects.filter(pk="c").exists()]
    return found


if __name__ == "__main__":
    django.setup()
    setup_test_environment()
    call_command("migrate", verbosity=0)
    json.dump({"reading": reading, "deleting": deleting, "admin": admin}[sys.argv[1]](), sys.stdout)
