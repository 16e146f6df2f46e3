"""The search of a list supports Django's prefixes and suffixes, and copies of strings for searches."""

from __future__ import annotations

import pytest

from project.directory.models import Company
from project.service.models import Beneficiary, User
from tests.contract.conftest import Pages, Registering, shown


@pytest.fixture
def companies(table: object) -> None:
    """Return companies with a word in several places."""
    for name in ("Zeta", "zeta", "Zeta Works", "The Zeta"):
        Company.objects.create(name=name)


@pytest.mark.usefixtures("companies")
@pytest.mark.parametrize(
    ("field", "found"),
    [
        ("name", {"Zeta", "zeta", "Zeta Works", "The Zeta"}),
        ("^name", {"Zeta", "zeta", "Zeta Works"}),
        ("=name", {"Zeta", "zeta"}),
        ("name__istartswith", {"Zeta", "zeta", "Zeta Works"}),
        ("name__startswith", {"Zeta", "Zeta Works"}),
        ("name__iexact", {"Zeta", "zeta"}),
        ("name__exact", {"Zeta"}),
        ("name__contains", {"Zeta", "Zeta Works", "The Zeta"}),
    ],
)
def test_a_field_is_searched_as_it_says(registered: Registering, field: str, found: set[str]) -> None:
    """The syntax is Django's."""
    pages = registered(Company, list_display=("name",), search_fields=(field,))
    assert {*shown(pages.get("directory/company/?q=Zeta"))} == found


@pytest.mark.usefixtures("companies")
def test_what_stands_in_quotation_marks_is_one_word(registered: Registering) -> None:
    """The syntax is Django's."""
    pages = registered(Company, list_display=("name",), search_fields=("name",))
    assert shown(pages.get('directory/company/?q="the zeta"')) == ["The Zeta"]


@pytest.fixture
def people(pages: Pages) -> None:
    """Some whose names have accents, and a copy without."""
    school = Beneficiary.objects.create(beneficiary_id="school", name="School")
    for name in ("Gómez", "Gomera", "Young"):
        User.objects.create(beneficiary=school, first_name="Inés", last_name=name)


@pytest.mark.usefixtures("people")
def test_a_text_is_found_by_what_its_copy_leaves_out(registered: Registering) -> None:
    """The copy of the string has no accents."""
    pages = registered(User, list_display=("last_name",), search_fields=("last_name",))
    assert shown(pages.get("service/user/?q=GOMEZ"), "last_name") == ["Gómez"]


@pytest.mark.usefixtures("people")
def test_a_large_list_is_searched_by_a_key_with_a_copy(registered: Registering) -> None:
    """The search of too many rows ignores case and accents."""
    options = {"list_display": ("last_name",), "search_fields": ("last_name",), "list_max_in_memory": 1}
    pages = registered(User, **options)
    assert {*shown(pages.get("service/user/?q=gOm"), "last_name")} == {"Gómez", "Gomera"}
