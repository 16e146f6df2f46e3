"""The requests and capacity units of the admin's own pages, for one set of objects."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from dynamo_single.admin.batch_actions.models import AdminJob
from dynamo_single.admin.log import LogEntry
from dynamo_single.admin.secrets import replaced
from dynamo_single.costs import measure_requests
from project.directory.models import Company, Office, Person
from tests.contract.conftest import Pages


@pytest.fixture
def job_id(pages: Pages) -> str:
    """Store 200 companies, one with 40 people and 10 log entries, 5 in the trash, a sample, and a job of 10."""
    Company.objects.bulk_create(
        Company(company_id=f"c{number:03}", name=f"Company {number:03}", stock="ACM", public=number % 2 == 0)
        for number in range(200)
    )
    first = Company.objects.get(pk="c000")
    Person.objects.bulk_create(
        Person(company=first, person_id=f"p{number:02}", name=f"Person {number:02}", role="manager")
        for number in range(40)
    )
    Office.objects.create(company=first, office_id="o", city="Ulm", address="1 Example Street")
    for number in range(195, 200):
        Company.objects.get(pk=f"c{number}").delete()
    for number in range(10):
        LogEntry.objects.create(
            user_id=pages.user.pk,
            object_type="directory.company",
            object_id="c000",
            object_repr="Company 000",
            action_flag=2,
            change_message=f"Changed {number}.",
        )
    call_command("dynamo_sample", verbosity=0)
    job = AdminJob.objects.create(
        user_key=str(pages.user.pk),
        label="directory.company",
        action="delete",
        keys=[f"c{number:03}" for number in range(10)],
        expires_at="2099-01-01T00:00:00Z",
    )
    return str(job.job_id)


#: The requests of each page, two of which read the session and the user, and the read units of all.
PAGES: dict[str, tuple[dict[str, int], float]] = {
    "": ({"GetItem": 2, "Query": 1}, 3.0),
    "directory/": ({"GetItem": 2}, 2.0),
    "directory/company/": ({"GetItem": 2, "Query": 2}, 8.0),
    "directory/company/?p=2": ({"GetItem": 2, "Query": 1}, 6.0),
    "directory/company/?public__exact=1": ({"GetItem": 2, "Query": 1}, 6.0),
    "directory/company/?q=Company 00": ({"GetItem": 2, "Query": 1}, 6.0),
    "directory/company/?o=2": ({"GetItem": 2, "Query": 1}, 6.0),
    "directory/company/?trash=yes": ({"GetItem": 2, "Query": 1}, 2.5),
    "directory/company/?_csv=": ({"GetItem": 2, "Query": 1}, 6.0),
    "directory/company/add/": ({"GetItem": 2}, 2.0),
    "directory/company/c000/change/": ({"GetItem": 3, "Query": 1}, 4.0),
    "directory/company/c001/change/": ({"GetItem": 3, "Query": 1}, 3.5),
    "directory/company/c000/delete/": ({"GetItem": 3, "Query": 1}, 5.0),
    "directory/company/c000/history/": ({"GetItem": 4, "Query": 1}, 4.5),
    "directory/company/c199/change/": ({"GetItem": 3, "Query": 4}, 5.5),
    "directory/person/": ({"GetItem": 3, "Query": 1}, 3.5),
    "directory/person/c000~~p00/change/": ({"GetItem": 4}, 3.5),
    "directory/person/?role__exact=manager": ({"GetItem": 3, "Query": 1}, 3.5),
    "directory/office/": ({"GetItem": 3, "Query": 1}, 3.0),
    "autocomplete/?app_label=directory&model_name=person&field_name=company&term=Company 1": (
        {"GetItem": 2, "Query": 1},
        6.0,
    ),
    "dynamodb/table/": ({"GetItem": 2}, 2.0),
    "dynamodb/table/?pk=COMPANY%23c000": ({"GetItem": 2, "Query": 1}, 3.0),
    "dynamodb/table/?index=gs1&pk=COMPANY": ({"GetItem": 2, "Query": 1}, 3.0),
    "dynamodb/table/?begins=COMP": ({"GetItem": 2, "Scan": 1}, 8.5),
    "dynamodb/table/download/?pk=COMPANY%23c000": ({"GetItem": 2, "Query": 1}, 3.0),
    "dynamodb/item/?pk=COMPANY%23c000&sk=%23METADATA": ({"GetItem": 3}, 3.0),
    "dynamodb/pictures/": ({"GetItem": 3}, 3.0),
    "dynamodb/patterns/": ({"GetItem": 2}, 2.0),
    "dynamodb/patterns.svg": ({"GetItem": 2}, 2.0),
    "dynamodb/health/": ({"GetItem": 3, "DescribeTable": 1, "DescribeTimeToLive": 1}, 3.0),
    "dynamodb/health/?check=": ({"GetItem": 2, "Scan": 1, "BatchGetItem": 1, "DescribeTable": 1}, 21.0),
    "dynamodb/log/": ({"GetItem": 3, "Query": 1}, 3.5),
    "dynamodb/jobs/": ({"GetItem": 2, "Query": 1}, 2.5),
    "dynamodb/jobs/{job}/": ({"GetItem": 3, "BatchGetItem": 1, "Query": 10}, 24.0),
    "accounts/user/": ({"GetItem": 2, "Query": 1}, 2.5),
    "accounts/group/": ({"GetItem": 2, "Query": 1}, 2.5),
    "password_change/": ({"GetItem": 2}, 2.0),
}


def test_each_page_costs(pages: Pages, job_id: str) -> None:
    """None of them writes, so that all are of the same data."""
    found = {}
    for path in PAGES:
        with measure_requests() as costs:
            response = pages.get(path.format(job=job_id))
        assert response.status_code == 200, path
        found[path] = ({**costs.operations}, costs.read_units)
    assert found == PAGES


def test_callables_are_replaced_as_names_are() -> None:
    """A column may be a callable that shows a secret."""
    assert replaced(["a", ("b", str)], {"b": "c", str: "masked"}) == ["a", ["c", "masked"]]
