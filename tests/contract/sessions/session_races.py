"""Two concurrent requests on one session, for any store; ``main`` runs them on Django's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from django.contrib.sessions.backends.base import UpdateError

Outcome = list[Any]


def outcome(store: Any, *keys: str | None, errors: tuple[bool, ...] = ()) -> Outcome:
    """Return the stored value of each key, and the rejected saves."""
    return [dict(store(key).items()) for key in keys] + list(errors)


def refused(session: Any) -> bool:
    """Return whether a session cannot be saved because it was deleted."""
    try:
        session.save()
    except UpdateError:
        return True
    return False


def both_change(store: Any, key: str) -> Outcome:
    """Two requests read, each changes something, and both save."""
    first, second = store(key), store(key)
    first["first"], second["second"] = 1, 2
    return outcome(store, key, errors=(refused(first), refused(second)))


def the_first_saves_last(store: Any, key: str) -> Outcome:
    """The first reader saves last."""
    first, second = store(key), store(key)
    first["first"] = second["second"] = 1
    return outcome(store, key, errors=(refused(second), refused(first)))


def one_only_saves(store: Any, key: str) -> Outcome:
    """Change a value in one request; the other saves its loaded data, as with SESSION_SAVE_EVERY_REQUEST."""
    first, second = store(key), store(key)
    first["first"] = 1
    second.get("colour")
    return outcome(store, key, errors=(refused(first), refused(second)))


def one_only_reads(store: Any, key: str) -> Outcome:
    """Change a value in one request; the other only reads."""
    first, second = store(key), store(key)
    first["first"] = 1
    second.get("colour")
    return outcome(store, key, errors=(refused(first),))


def one_removes(store: Any, key: str) -> Outcome:
    """Remove a value in one request after the other has read it."""
    first, second = store(key), store(key)
    del first["colour"]
    second["second"] = 2
    return outcome(store, key, errors=(refused(first), refused(second)))


def one_empties(store: Any, key: str) -> Outcome:
    """Empty the session in one request, and change it in the other."""
    first, second = store(key), store(key)
    first.clear()
    second["second"] = 2
    return outcome(store, key, errors=(refused(second), refused(first)))


def one_logs_out(store: Any, key: str) -> Outcome:
    """End the session in one request, and save it in the other afterwards."""
    first, second = store(key), store(key)
    second["second"] = 2
    first.flush()
    return outcome(store, key, errors=(refused(second), store().exists(key)))


def one_logs_out_unread(store: Any, key: str) -> Outcome:
    """End the session in one request; the other sets a value without a read."""
    first, second = store(key), store(key)
    first.flush()
    second.clear()
    second["second"] = 2
    return outcome(store, key, errors=(refused(second), store().exists(key)))


def both_log_out(store: Any, key: str) -> Outcome:
    """Both end the session."""
    first, second = store(key), store(key)
    first.flush()
    second.flush()
    return outcome(store, key, errors=(store().exists(key),))


def one_changes_its_key(store: Any, key: str) -> Outcome:
    """Log in, which changes the session's key; the other request saves with the old key."""
    first, second = store(key), store(key)
    first["first"], second["second"] = 1, 2
    first.cycle_key()
    first.save()
    return outcome(store, key, first.session_key, errors=(refused(second), store().exists(key)))


def one_sets_its_expiry(store: Any, key: str) -> Outcome:
    """Shorten the session in one request; the other changes it and saves last."""
    first, second = store(key), store(key)
    first.set_expiry(300)
    second["second"] = 2
    errors = (refused(first), refused(second))
    return [*outcome(store, key, errors=errors), store(key).get_expiry_age()]


RACES: dict[str, Callable[[Any, str], Outcome]] = {
    race.__name__: race
    for race in (
        both_change,
        the_first_saves_last,
        one_only_saves,
        one_only_reads,
        one_removes,
        one_empties,
        one_logs_out,
        one_logs_out_unread,
        both_log_out,
        one_changes_its_key,
        one_sets_its_expiry,
    )
}


def run(store: Any) -> dict[str, Outcome]:
    """The outcome of each race, each on a session of its own that holds a colour."""
    found = {}
    for name, race in RACES.items():
        session = store()
        session["colour"] = "green"
        session.save()
        found[name] = race(store, session.session_key)
    return found


def main() -> None:
    """Run the races on Django's database sessions, in SQLite, and print the outcomes as JSON."""
    import django
    from django.conf import settings

    settings.configure(
        SECRET_KEY="races",
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        INSTALLED_APPS=["django.contrib.sessions"],
    )
    django.setup()
    from django.contrib.sessions.backends.db import SessionStore
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    print(json.dumps(run(SessionStore)))


if __name__ == "__main__":
    main()
