"""The admin's app for upstream's tests: this app's, which looks for no ``admin`` modules by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dynamo_single.admin.apps import DynamoAdminConfig


class SimpleDynamoAdminConfig(DynamoAdminConfig):
    """To ``DynamoAdminConfig`` what Django's ``SimpleAdminConfig`` is to ``AdminConfig``."""

    def ready(self) -> None:
        """Do all but import the apps' ``admin`` modules."""
        module: Any = self.module
        self.module = SimpleNamespace(autodiscover=lambda: None)
        super().ready()
        self.module = module
