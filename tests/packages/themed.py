"""A site of both: the theme's and this app's."""

from typing import Any

from dynamo_single.admin.apps import DynamoAdminConfig


class UnfoldConfig(DynamoAdminConfig):
    """The admin with the site below."""

    default_site = "tests.packages.themed.site"


def site() -> Any:
    """Return the site; its classes can be imported only after the apps are loaded."""
    from unfold.sites import UnfoldAdminSite

    from dynamo_single.admin import DynamoAdminSite

    return type("Site", (DynamoAdminSite, UnfoldAdminSite), {})()
