"""What ``makemigrations`` and ``migrate`` compare: Django's, which finds no change in models in DynamoDB."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.db.migrations.autodetector import MigrationAutodetector

from dynamo_single.backend.errors import is_stored_in_dynamodb


class Autodetector(MigrationAutodetector):
    """Django's, to which models in DynamoDB are the same before and after, so that no file is written for them.

    They are in both states, since SQL models may refer to them.
    """

    def _detect_changes(self, convert_apps: Any = None, graph: Any = None) -> Any:
        for model in apps.get_models(include_swapped=True):
            key = model._meta.app_label, model._meta.model_name
            if is_stored_in_dynamodb(model) and key in self.to_state.models:
                self.from_state.models[key] = self.to_state.models[key].clone()
        return super()._detect_changes(convert_apps, graph)  # type: ignore[misc]  # private to Django
