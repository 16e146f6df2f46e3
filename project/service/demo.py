"""The demo's users and e-mail addresses, all invented. Only their times differ between runs."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

from django.core.management import call_command

from dynamo_single import clock
from project.service.models import Beneficiary, Email, User

#: The number of shards of the lists of users and of addresses.
SHARDS = 4
BENEFICIARIES = {"harbour-library": "Harbour Library", "north-school": "North School", "town-museum": "Town Museum"}
FIRST_NAMES = (
    "Agnès", "Björn", "Chloé", "Dušan", "Elif", "Françoise", "Gülşen", "Håkon", "Inés", "Jürgen", "Kateřina", "Łukasz",
    "Mária", "Noël", "Óscar", "Pía", "Renée", "Sørén", "Tomáš", "Zoë",
)  # fmt: skip
LAST_NAMES = ("Gómez-Juárez", "Müller", "D'Angelo", "Nováková", "Åkesson", "Şahin", "de la Cruz", "Brontë", "Smith")
#: The user that is written last. If it exists, all others exist too.
LAST = "demo-user-000"


def is_loaded() -> bool:
    """Return whether all demo data exist: one read of the last user."""
    return User.objects.filter(pk=LAST).exists()


def load() -> None:
    """Create 180 users, up to a few months old, with one or two addresses each; keep existing ones."""
    if not User.objects.exists():
        for model in ("service.User", "service.Email"):
            call_command("dynamo_shards", model, SHARDS, first=True, stdout=StringIO())
    pairs = [(first, last) for first in FIRST_NAMES for last in LAST_NAMES]
    # Shuffle the pairs: 97 and 180 have no common divisor, so each pair occurs once.
    names = [pairs[97 * number % len(pairs)] for number in range(len(pairs))]
    Beneficiary.objects.bulk_create(
        [Beneficiary(beneficiary_id=slug, name=name) for slug, name in BENEFICIARIES.items()], ignore_conflicts=True
    )
    users = [_user(number, *name) for number, name in enumerate(names)]
    addresses = [address for number, user in enumerate(users) for address in _addresses(number, user)]
    Email.objects.bulk_create(addresses, ignore_conflicts=True)
    User.objects.bulk_create(users[1:], ignore_conflicts=True)
    User.objects.bulk_create(users[:1], ignore_conflicts=True)


def _user(number: int, first: str, last: str) -> User:
    return User(
        user_id=f"demo-user-{number:03}",
        beneficiary_id=list(BENEFICIARIES)[number % len(BENEFICIARIES)],
        created=clock.now() - timedelta(hours=3 + 13 * number, minutes=7 * number),
        first_name=first,
        last_name=last,
        phone=f"+1555010{number:04}" if number % 4 == 0 else None,
    )


def _addresses(number: int, user: User) -> list[Email]:
    # RFC 2606 reserves example.org for examples, so e-mails cannot reach a person.
    hosts = ("example.org", "example.net")[: 1 + (number % 3 == 0)]
    name = f"{user.first_name[0]}.{user.user_id}".encode("ascii", "ignore").decode().lower().strip(".")
    return [Email(email=f"{name}@{host}", user_id=user.pk, created=user.created) for host in hosts]
