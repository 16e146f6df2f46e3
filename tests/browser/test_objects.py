"""One object in the admin, with its children: added, changed in two tabs, deleted, restored, and in the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from project.directory.models import Company, Person

COMPANIES = "/admin/directory/company/"
ACME = f"{COMPANIES}acme/change/"


@pytest.fixture
def trashed(acme: Company) -> Company:
    """Return the company in the trash with its children."""
    acme.delete()
    return acme


@pytest.fixture
def other_tab(signed_in: Page) -> Iterator[Page]:
    """Another tab of the same browser."""
    page = signed_in.context.new_page()
    yield page
    page.close()


def press(page: Page, name: str) -> None:
    """Press a button that submits a form, and wait for the next page."""
    with page.expect_navigation():
        page.get_by_role("button", name=name, exact=True).click()


def names(model: type[Company] | type[Person]) -> list[str]:
    """The names of a model's live objects, in order."""
    return sorted(model.objects.values_list("name", flat=True))


def changed_in_both(page: Page, other: Page, field: str, theirs: str, ours: str) -> None:
    """Open a company in two tabs, save a change of a field in the other one, and then one of its name in the first."""
    page.goto(ACME)
    other.goto(ACME)
    other.fill(field, theirs)
    press(other, "Save")
    page.fill("#id_name", ours)
    press(page, "Save")


def test_a_company_is_added_with_three_people_inline(signed_in: Page) -> None:
    """Each "add another" adds a row, and all rows are saved with the company."""
    page = signed_in
    page.goto(f"{COMPANIES}add/")
    page.fill("#id_name", "Acme")
    for number, name in enumerate(("Ann", "Ben", "Cleo")):
        page.locator("#person_set-group .add-row a").click()
        page.fill(f"#id_person_set-{number}-name", name)
    press(page, "Save")
    assert names(Person) == ["Ann", "Ben", "Cleo"]


@pytest.mark.usefixtures("acme")
def test_a_stale_edit_shows_what_somebody_else_has_saved(
    signed_in: Page, other_tab: Page, screenshot: Callable[[str, int], None]
) -> None:
    """The field shows the current value."""
    changed_in_both(signed_in, other_tab, "#id_name", "Acme Limited", "Acme and Sons")
    screenshot("admin-stale-edit", 515)
    expect(signed_in.locator(".field-name .errorlist")).to_contain_text('changed this to "Acme Limited"')


@pytest.mark.usefixtures("acme")
def test_a_stale_edit_keeps_what_was_entered(signed_in: Page, other_tab: Page) -> None:
    """The field that both have changed has the later text."""
    changed_in_both(signed_in, other_tab, "#id_name", "Acme Limited", "Acme and Sons")
    expect(signed_in.locator("#id_name")).to_have_value("Acme and Sons")


@pytest.mark.usefixtures("acme")
def test_a_stale_edit_takes_over_what_only_somebody_else_has_changed(signed_in: Page, other_tab: Page) -> None:
    """An untouched field gets the other user's text."""
    changed_in_both(signed_in, other_tab, "#id_stock", "ACME", "Acme and Sons")
    expect(signed_in.locator("#id_stock")).to_have_value("ACME")


def test_a_merged_edit_is_saved_when_it_is_sent_again(signed_in: Page, other_tab: Page, acme: Company) -> None:
    """Both changes are stored."""
    changed_in_both(signed_in, other_tab, "#id_stock", "ACME", "Acme and Sons")
    press(signed_in, "Save")
    acme.refresh_from_db()
    assert (acme.name, acme.stock) == ("Acme and Sons", "ACME")


@pytest.mark.usefixtures("acme")
def test_a_stale_row_of_an_inline_is_merged(signed_in: Page, other_tab: Page) -> None:
    """A person's field shows the current value too."""
    for page in (signed_in, other_tab):
        page.goto(ACME)
        page.fill("#id_person_set-0-name", f"Ann {'Lee-Ode' if page is other_tab else 'Lee-Roy'}")
    press(other_tab, "Save")
    press(signed_in, "Save")
    expect(signed_in.locator("#person_set-0 .field-name .errorlist")).to_contain_text('changed this to "Ann Lee-Ode"')


@pytest.mark.usefixtures("acme")
def test_the_question_before_a_deletion_names_what_goes_along(signed_in: Page) -> None:
    """The page lists people and offices."""
    signed_in.goto(f"{COMPANIES}acme/delete/")
    goes_along = ["Person: Ann Lee", "Person: Ben Ode", "Office: Ghent"]
    expect(signed_in.locator("#content ul").last.get_by_role("listitem")).to_have_text(goes_along)


@pytest.mark.usefixtures("acme")
def test_a_deleted_company_leaves_the_list(signed_in: Page) -> None:
    """The list of live companies does not contain it."""
    page = signed_in
    page.goto(ACME)
    page.get_by_role("link", name="Delete", exact=True).click()
    press(page, "Move to the trash")
    expect(page.locator(".paginator")).to_contain_text("0 companies")


@pytest.mark.usefixtures("trashed")
def test_the_trash_lists_a_deleted_company(signed_in: Page) -> None:
    """The filter "In the trash" shows it."""
    page = signed_in
    page.goto(COMPANIES)
    page.get_by_role("link", name="In the trash").click()
    expect(page.locator("#result_list .field-name")).to_have_text(["Acme"])


@pytest.mark.usefixtures("acme")
def test_an_object_in_the_trash_says_who_deleted_it(signed_in: Page) -> None:
    """The user's name, above the form."""
    page = signed_in
    page.goto(f"{COMPANIES}acme/delete/")
    press(page, "Move to the trash")
    page.goto(ACME)
    expect(page.locator("#content")).to_contain_text("Deleted by admin on")


@pytest.mark.usefixtures("trashed")
def test_a_restored_company_is_back_with_its_people(signed_in: Page) -> None:
    """The button on its page restores the objects that were deleted with it."""
    signed_in.goto(ACME)
    press(signed_in, "Restore")
    assert (names(Company), names(Person)) == (["Acme"], ["Ann Lee", "Ben Ode"])


@pytest.mark.usefixtures("acme")
def test_the_table_shows_a_companys_partition(signed_in: Page, screenshot: Callable[[str, int], None]) -> None:
    """The object leads to its item, and the item to all items in its partition by sort key."""
    page = signed_in
    page.goto(ACME)
    page.get_by_role("link", name="Show in table").click()
    page.get_by_role("link", name="COMPANY#acme", exact=True).first.click()
    keys = page.locator(".dynamo-items tbody .dynamo-key")
    expect(keys).to_have_text(["#METADATA", "OFFICE#ghent", "PEOPLE#ann", "PEOPLE#ben"])
    screenshot("admin-table", 690)


@pytest.mark.usefixtures("acme")
def test_an_item_in_the_table_leads_to_its_object(signed_in: Page) -> None:
    """The link next to its type opens the form."""
    page = signed_in
    page.goto("/admin/dynamodb/table/?pk=COMPANY%23acme")
    page.get_by_role("row", name="PEOPLE#ben").get_by_role("link", name="Object").click()
    expect(page.locator("#id_name")).to_have_value("Ben Ode")


def test_the_table_masks_passwords(signed_in: Page) -> None:
    """A user's item does not show the hash."""
    page = signed_in
    page.goto("/admin/accounts/user/")
    page.locator("#result_list tbody th a").click()
    page.get_by_role("link", name="Show in table").click()
    expect(page.locator(".dynamo-json")).not_to_contain_text("md5$")
