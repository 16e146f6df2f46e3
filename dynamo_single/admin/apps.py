"""The admin's app, for ``INSTALLED_APPS`` instead of ``django.contrib.admin``."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig
from django.contrib.admin.sites import all_sites
from django.core import checks


class DynamoAdminConfig(AdminConfig):
    """Django's admin with a site that stores its log with the users."""

    default = False
    default_site = "dynamo_single.admin.sites.DynamoAdminSite"

    def ready(self) -> None:
        """Register the log's model first, then discover the apps' ``admin`` modules."""
        from dynamo_single.admin import history
        from dynamo_single.admin.batch_actions import models  # noqa: F401 - registers the model

        if history.is_in_dynamodb():
            from dynamo_single.admin import log  # noqa: F401 - registers the model
        from dynamo_single.admin.viewing import table_samples  # noqa: F401 - registers the model

        super().ready()
        checks.register(check_registered, checks.Tags.admin)


def check_registered(**kwargs: object) -> list[checks.CheckMessage]:
    """E011: a DynamoDB model that is registered with an admin that does not support DynamoDB."""
    from dynamo_single.admin import DynamoModelAdmin
    from dynamo_single.orm.model.model import Model

    return [
        checks.Error(
            f"{model._meta.label} is stored in DynamoDB and registered with {type(admin).__name__}.",
            hint="Derive the admin class from dynamo_single.admin.DynamoModelAdmin.",
            obj=type(admin),
            id="dynamo_single.E011",
        )
        for site in all_sites
        for model, admin in site._registry.items()
        if issubclass(model, Model) and not isinstance(admin, DynamoModelAdmin)
    ]
