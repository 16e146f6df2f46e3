"""The demo's servers, members and messages, all invented. Only their times differ between runs."""

from __future__ import annotations

from datetime import timedelta

from dynamo_single import clock
from project.chat.models import Member, Message, Profile, Server

SERVERS = (
    ("gaming", "Gaming", "Whatever is played, and who wants to play it", 1),
    ("chess", "Chess", "Openings, endgames, and the mistakes between them", 4),
    ("bread", "Sourdough", "Flour, water, salt and patience", 6),
    ("bikes", "Bicycles", "Repairs, routes and rain", 9),
    ("plants", "House plants", "Why are the leaves yellow?", 15),
    ("quiet", "The quiet room", "Nobody has written here yet", 30),
)
FIRST = ("amber", "brave", "clever", "gentle", "lucky", "misty", "polar", "quick", "rusty", "silent", "solar", "velvet")
SECOND = (
    "badger", "falcon", "gecko", "heron", "koala", "lynx", "marten", "otter", "raven", "tapir",
)  # fmt: skip
LINES = (
    "Good morning!",
    "Has anyone tried this before?",
    "Yes, last week. It took me three attempts.",
    "I can show you on Saturday.",
    "Thank you, that helped a lot.",
    "Where did you find it?",
    "In the small shop by the station. They have more than you would expect.",
    "Count me in.",
    "I will be ten minutes late.",
    "That is a very good question, and I do not know the answer.",
)
MESSAGES = {"gaming": 120, "chess": 40, "bread": 25, "bikes": 9, "plants": 3}
#: The message that is written last. If it exists, all others exist too.
LAST = "demo-last"


def is_loaded() -> bool:
    """Return whether all demo data exist: one Query for the last message."""
    return Message.objects.filter(message_id=LAST).exists()


def load() -> None:
    """Create 120 profiles, six servers and 197 messages; keep existing ones."""
    names = [f"{first}_{second}" for second in SECOND for first in FIRST]
    profiles = [Profile(profile_id=f"demo-{name}", username=name) for name in names]
    Profile.objects.bulk_create(profiles, ignore_conflicts=True)
    Server.objects.bulk_create(
        [Server(server_id=slug, name=name, topic=topic) for slug, name, topic, _ in SERVERS], ignore_conflicts=True
    )
    for slug, _, _, every in SERVERS:
        _join(slug, profiles[::every])
    messages = [_message(slug, number, names) for slug, count in MESSAGES.items() for number in range(count)]
    # Keys contain times, so an interrupted run wrote these messages under other keys.
    there = {message.message_id for slug in MESSAGES for message in Message.objects.filter(server_id=slug)}
    missing = [message for message in messages[:-1] if message.message_id not in there]
    Message.objects.bulk_create(missing, ignore_conflicts=True)
    messages[-1].message_id = LAST
    Message.objects.bulk_create(messages[-1:], ignore_conflicts=True)


def _join(slug: str, profiles: list[Profile]) -> None:
    roles = {0: "owner", 1: "moderator", 2: "moderator"}
    members = [
        Member(server_id=slug, user_id=profile.pk, role=roles.get(number, "member"))
        for number, profile in enumerate(profiles)
    ]
    Member.objects.bulk_create(members, ignore_conflicts=True)


def _message(slug: str, number: int, names: list[str]) -> Message:
    moment = clock.now() - timedelta(minutes=11 + 37 * number)
    text = LINES[(7 * number + len(slug)) % len(LINES)]
    return Message(
        server_id=slug,
        message_id=f"demo-{slug}-{number:03}",
        sent_at=moment,
        author=names[(5 * number) % 11],
        text=text,
    )
