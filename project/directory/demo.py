"""The demo's data: companies with people and offices, all of them invented.

Names and their order are the same in each run; only identifiers and times differ.
"""

from __future__ import annotations

from datetime import date, timedelta
from itertools import cycle, islice

from project.directory.models import Company, Office, Person

COMPANIES = (
    "Alder Bakery",
    "Amber Printing",
    "Birch Logistics",
    "Blue Harbour Foods",
    "Cedar Robotics",
    "Clear Water Supply",
    "Copper Kettle",
    "Delta Instruments",
    "Elm Street Books",
    "Evergreen Paper",
    "Fjord Shipping",
    "Granite Works",
    "Harvest Mills",
    "Hazel Design",
    "Ivory Tower Games",
    "Juniper Travel",
    "Kestrel Optics",
    "Larch Furniture",
    "Maple Insurance",
    "Meridian Clocks",
    "Northern Lamps",
    "Oak and Sons",
    "Pine Valley Dairy",
    "Quartz Research",
    "River Textiles",
    "Silver Bicycle",
    "Tulip Flowers",
    "Willow Music",
)
FIRST_NAMES = (
    "Ada", "Ben", "Clara", "Dan", "Ella", "Finn", "Greta", "Hugo", "Ines", "Jonas", "Karla", "Leo", "Mia",
)  # fmt: skip
LAST_NAMES = ("Sample", "Example", "Tester", "Placeholder", "Specimen", "Pattern", "Draft")
CITIES = ("Amsterdam", "Berlin", "Copenhagen", "Dublin", "Edinburgh", "Florence", "Ghent", "Helsinki", "Lisbon")
ROLES = ("founder", "manager", "member")
DAYS = ("Monday", "Tuesday", "Thursday")
PEOPLE_EACH = 3
FIRST_YEAR = 1960


def is_loaded() -> bool:
    """Return whether there are companies, live or in the trash: one Query, or two."""
    return Company.objects.exists() or Company.deleted_objects.exists()


def load() -> None:
    """Create a few dozen of each, with one write for each object, as a view would do."""
    names = cycle(f"{first} {last}" for last in LAST_NAMES for first in FIRST_NAMES)
    cities = cycle(CITIES)
    for number, name in enumerate(COMPANIES):
        listed = number % 3 == 0
        founded = date(FIRST_YEAR + 2 * number, 1 + number % 12, 1 + number)
        company = Company.objects.create(
            name=name, stock=_ticker(name) if listed else None, public=listed, founded=founded
        )
        for role, person in zip(ROLES, islice(names, PEOPLE_EACH), strict=True):
            Person.objects.create(company=company, name=person, email=_address(person, name), role=role)
        for street, city in enumerate(islice(cities, 1 + number % 2), start=1):
            Office.objects.create(
                company=company,
                city=city,
                address=f"{number + street} Example Street",
                opened=founded + timedelta(days=400 * street),
                hours=[{"day": day, "opens": "09:00:00", "closes": "17:30:00"} for day in DAYS],
            )


def _ticker(name: str) -> str:
    return "".join(character for character in name.upper() if character not in "AEIOU ")[:4]


def _address(person: str, company: str) -> str:
    # RFC 2606 reserves example.com for examples, so e-mails cannot reach a person.
    return f"{person}@{company}.example.com".lower().replace(" ", "-")
