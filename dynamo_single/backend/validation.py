"""Checks of the settings of an alias that uses the engine, for ``check --database`` and ``migrate``."""

from __future__ import annotations

from django.apps import apps
from django.core.checks import CheckMessage, Error, Warning
from django.db.backends.base.validation import BaseDatabaseValidation


class DatabaseValidation(BaseDatabaseValidation):
    """Checks for settings that promise more than the engine does."""

    def check(self, **kwargs: object) -> list[CheckMessage]:
        """E021: the app itself is not installed; W901: ``ATOMIC_REQUESTS``, although nothing is rolled back."""
        if not apps.is_installed("dynamo_single"):
            return [
                Error(
                    f"DATABASES['{self.connection.alias}'] is dynamo_single.backend, and INSTALLED_APPS lacks "
                    "'dynamo_single': migrate would try to make SQL tables.",
                    hint="Add 'dynamo_single' to INSTALLED_APPS.",
                    id="dynamo_single.E021",
                )
            ]
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
