"""Checks of the settings of an alias that uses the engine; run by ``check --database`` and ``migrate``."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Warning
from django.db.backends.base.validation import BaseDatabaseValidation


class DatabaseValidation(BaseDatabaseValidation):
    """Warns of settings that promise what the engine does not do."""

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """Return a warning for ``ATOMIC_REQUESTS``, which rolls nothing back."""
        if not self.connection.settings_dict["ATOMIC_REQUESTS"]:
            return []
        return [
            Warning(
                f"DATABASES['{self.connection.alias}']['ATOMIC_REQUESTS'] is on, but dynamo_single.backend rolls "
                "nothing back: items that a failing request has written stay written.",
                hint="Remove ATOMIC_REQUESTS.",
                id="dynamo_single.W901",
            )
        ]
