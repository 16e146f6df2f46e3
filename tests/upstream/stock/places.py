"""Puts this app's user, group, session stores and cache where upstream's tests import Django's own from."""

from __future__ import annotations

from typing import Any


def take() -> None:
    """After Django's ``setup()``, and before any module of tests is imported."""
    from django.contrib.auth import models as auth_models
    from django.contrib.sessions.backends import cached_db, db
    from django.core.cache.backends import db as cache_db

    from dynamo_single import cached_sessions, sessions
    from dynamo_single.cache import DynamoCache
    from tests.upstream.stock import models

    class DatabaseCache(DynamoCache):
        """Ours; upstream names an SQL table, which is no alias of ours, and bounds how many entries there are."""

        def __init__(self, table: str, params: dict[str, Any]) -> None:
            options = params.get("OPTIONS", {})
            kept = {name: value for name, value in options.items() if name not in ("MAX_ENTRIES", "CULL_FREQUENCY")}
            super().__init__("", {**params, "OPTIONS": kept})

    auth_models.User = models.User  # type: ignore[misc]
    auth_models.Group = models.Group  # type: ignore[misc,assignment]
    db.SessionStore = sessions.SessionStore  # type: ignore[misc,assignment]
    cached_db.SessionStore = cached_sessions.SessionStore  # type: ignore[misc,assignment]
    cache_db.DatabaseCache = DatabaseCache  # type: ignore[misc,assignment]
