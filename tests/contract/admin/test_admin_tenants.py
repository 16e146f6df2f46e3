"""Two tenants on one site: no page of one's staff has a value of the other's, or a count that the other changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth import get_user_model

from accounts.models import Group
from dynamo_single.admin.batch_actions.models import AdminJob
from dynamo_single.admin.log import LogEntry
from dynamo_single.auth import all_permissions
from dynamo_single.testing import frozen_time
from project.chat.models import Member, Message, Profile, Server
from project.directory.models import Company, Office, Person
from project.records.models import Book
from project.service.models import Beneficiary, Email, User
from tests.contract.admin.test_admin_every_page import PAGES, address
from tests.contract.conftest import Pages
from tests.deep import IS_DEEP

pytestmark = pytest.mark.urls("project.urls")

#: The attribute of each model whose prefix identifies the tenant of an object.
TENANT = {
    "accounts.group": "name",
    "accounts.user": "username",
    "directory.company": "name",
    "directory.person": "name",
    "directory.office": "city",
    "records.book": "author",
    "service.user": "first_name",
    "service.email": "email",
    "service.beneficiary": "name",
    "chat.server": "name",
    "chat.profile": "username",
    "chat.member": "username",
    "chat.message": "author",
}
OURS, THEIRS = "alpha", "omega"


def stored(name: str) -> dict[str, str]:
    """Create a tenant with an object of each model, some in the trash, a deleted one, and log entries of all of them.

    Every value contains the tenant's name, and keys do not.
    """
    key = name[0]
    staff = get_user_model()._default_manager.create_user(
        f"{name} staff",
        f"{name}-staff@example.com",
        "secret",
        user_id=f"{key}-user",
        is_staff=True,
        permissions=set(all_permissions()),
    )
    company = Company.objects.create(company_id=key, name=f"{name} Acme", stock=f"{name}"[:12])
    binned = Company.objects.create(company_id=f"{key}-binned", name=f"{name} Bin")
    gone = Company.objects.create(company_id=f"{key}-gone", name=f"{name} Gone")
    server = Server.objects.create(server_id=key, name=f"{name} Chess", topic=f"{name} topic")
    profile = Profile.objects.create(profile_id=key, username=f"{name} pip")
    beneficiary = Beneficiary.objects.create(beneficiary_id=key, name=f"{name} School")
    user = User.objects.create(user_id=key, beneficiary=beneficiary, first_name=f"{name} Inés", last_name=f"{name} G")
    data = {"title": f"{name} T", "author": {"lastname": f"{name} Bee"}, "price": 3}
    objects = [
        company,
        Person.objects.create(company=company, person_id=key, name=f"{name} Anna", email=f"{name}@example.com"),
        Person.objects.create(company=binned, person_id=f"{key}2", name=f"{name} Bert"),
        Office.objects.create(company=company, office_id=key, city=f"{name} Ulm"),
        Book.objects.create(id=f"{key}-book", data=data),
        server,
        profile,
        Member.objects.create(server=server, user=profile),
        Message.objects.create(server=server, message_id=f"0{key}", author=f"{name} pip", text=f"{name} text"),
        beneficiary,
        user,
        Email.objects.create(email=f"{name}@example.com", user=user),
        Group.objects.create(group_id=key, name=f"{name} Editors"),
        binned,
        gone,
    ]
    for obj in objects:
        LogEntry.objects.log_actions(staff.pk, [obj], 2, f"Changed {name}.", single_object=True)
    LogEntry.objects.log_actions(staff.pk, [gone], 3, single_object=True)
    gone.hard_delete()
    binned.delete()
    job = AdminJob.objects.create(
        user_key=staff.pk,
        job_id=f"01{key.upper()}",
        label="directory.company",
        action="delete",
        keys=[key],
        failed=1,
        failures=[[key, f"{name} Acme", "It was refused."]],
        expires_at="2099-01-01T00:00:00Z",
    )
    found = {obj._meta.label_lower: obj.pk for obj in reversed(objects[:-2])}
    more = {"accounts.user": staff.pk, "auth.user": staff.pk, "auth.group": "1"}
    return {**found, **more, "dynamodb.job": job.job_id, "app.list": "directory", "binned": binned.pk}


@pytest.fixture
def tenants(table: object, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[None]:
    """Each admin returns the objects of the tenant that the user belongs to, and the panel of costs is on."""
    settings.DYNAMO_SINGLE_COSTS = {"ADMIN_PANEL": True, "SHOW_KEYS": True}
    for model, modeladmin in admin.site._registry.items():
        field = TENANT.get(model._meta.label_lower)
        if field is None:
            continue

        def own(request: Any, field: str = field, modeladmin: Any = modeladmin) -> Any:
            tenant = request.user.username.split()[0]
            return type(modeladmin).get_queryset(modeladmin, request).filter(**{f"{field}__startswith": tenant})

        monkeypatch.setattr(modeladmin, "get_queryset", own)
    with frozen_time():
        yield


#: Models whose lists are requested in only one way each; the others share the code.
MODELS = (
    [label.replace(".", "/") for label in TENANT] if IS_DEEP else ["directory/company", "service/user", "chat/member"]
)
#: URLs in addition to the named ones, with the keys of a tenant.
ASKED = [
    *[f"{model}/{asked}" for model in MODELS for asked in ("?q=a", "?scan=", "?_facets=True", "?q=o&scan=")][
        :: 1 if IS_DEEP else 3
    ],
    *(f"directory/{model}/?trash=yes" for model in ("company", "person", "office")),
    *(f"directory/company/{{binned}}/{page}/" for page in ("change", "delete", "history")),
    *(
        f"autocomplete/?app_label=directory&model_name={model}&field_name=company&term="
        for model in ("person", "office")
    ),
    *("autocomplete/?app_label=service&model_name=email&field_name=user&term=",),
    *(f"autocomplete/?app_label=chat&model_name=member&field_name={name}&term=" for name in ("server", "user")),
    *(f"dynamodb/table/?pk={pk}" for pk in ("COMPANY%23{directory.company}", "beneficiary", "user%230", "email%230")),
    *(f"dynamodb/table/?index=gs1&pk={pk}" for pk in ("PROFILE", "CHATSERVER", "TRASH%23Company", "USER")),
    *(f"dynamodb/table/?begins={pk}" for pk in "ABCEGLMPSUbeu"),
    *("dynamodb/table/?index=gs2&pk=PERSON", "dynamodb/table/?index=gs2&pk=LOG", "dynamodb/table/"),
    *("dynamodb/item/?pk=COMPANY%23{directory.company}&sk=PEOPLE%23{directory.company}", "dynamodb/health/?check="),
    *("dynamodb/log/?user={accounts.user}",),
]


#: The ends of the addresses of single objects.
OF_OBJECTS = ("/change/", "/delete/", "/history/", "/add/", "/password/")


def named(keys: dict[str, str]) -> list[str]:
    """The pages of all addresses that the admin has, of the objects of a tenant."""
    item = f"dynamodb/item/?pk=COMPANY%23{keys['directory.company']}&sk=%23METADATA"
    own = {"dynamodb_table": "dynamodb/table/?index=gs1&pk=COMPANY", "dynamodb_item": item}
    found = [own.get(name) or address(name, keys).removeprefix("/admin/") for name in PAGES]
    return [path for path in found if not path.startswith(("auth/group", "login"))]


def asked(keys: dict[str, str]) -> list[str]:
    """Return the query strings of some pages."""
    return [re.sub(r"\{([\w.]+)\}", lambda match: keys[match[1]], path) for path in ASKED]


def opened(pages: Pages, paths: list[str]) -> dict[str, tuple[int, str]]:
    """Status and content of each page, without what differs each time."""
    found = {}
    for path in paths:
        answer = pages.get(path)
        text = answer.content.decode() + str(answer.headers.get("Location", ""))
        lines = re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", text).split("\n")
        # The attributes of an item come in any order.
        found[path] = answer.status_code, "\n".join(sorted(each.rstrip(",") for each in lines))
    return found


def pages_of(keys: dict[str, str]) -> Pages:
    """The admin as the tenant's staff sees it."""
    return Pages(get_user_model()._default_manager.get(pk=keys["accounts.user"]))


def test_pages_have_no_value_of_other_tenant(tenants: None) -> None:
    """The test covers every URL of the admin, including those of the test below.

    A normal run opens each form, and a third of the other pages of objects.
    """
    keys = stored(OURS)
    stored(THEIRS)
    forms = [path for path in named(keys) if path.endswith("/change/")]
    others = [path for path in named(keys) if path.endswith(OF_OBJECTS) and path not in forms]
    found = opened(pages_of(keys), named(keys) if IS_DEEP else [*forms, *others[::3]])
    assert {path for path, (status, _) in found.items() if status != 200} <= {"r/1/x/"}
    assert sum(OURS in text.replace(f"{OURS} staff", "") for _, text in found.values()) > len(found) // 2
    assert [path for path, (_status, text) in found.items() if THEIRS in text] == []


def test_pages_do_not_depend_on_other_tenant(tenants: None, settings: Any) -> None:
    """Lists, the table's pages and the log are the same with and without the other's objects: no count, no figure.

    A normal run compares a fourth of the pages, and opens the others without the panel, which takes most of the time.
    """
    keys = stored(OURS)
    pages = pages_of(keys)
    paths = [path for path in named(keys) if IS_DEEP or not path.endswith(OF_OBJECTS)] + asked(keys)
    compared = paths if IS_DEEP else paths[::4]
    before = opened(pages, compared)
    stored(THEIRS)
    after = opened(pages, compared)
    settings.DYNAMO_SINGLE_COSTS = {"ADMIN_PANEL": False}
    after |= opened(pages, [path for path in paths if path not in after])
    assert [path for path in before if before[path] != after[path]] == []
    assert [path for path, (_status, text) in after.items() if THEIRS in text] == []


def test_pages_of_other_tenants_objects_are_not_there(tenants: None) -> None:
    """A user who guesses their keys does not learn anything about them."""
    pages = pages_of(stored(OURS))
    keys = stored(THEIRS)
    found = opened(pages, [path for path in named(keys) if re.search(r"/o(~|-|/|%|mega)|/01O|sk=", path)])
    # A URL contains its key, which the user has guessed.
    texts = {path: text.replace(keys["service.email"], "") for path, (_status, text) in found.items()}
    assert len(texts) > 30
    assert [path for path, text in texts.items() if THEIRS in text] == []
