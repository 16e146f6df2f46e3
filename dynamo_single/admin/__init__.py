"""Django's admin for models that are stored in DynamoDB.

The admin itself is Django's. The modules here replace only those of its hooks that would query an SQL database. Nothing
in this package may import a model while apps are being loaded, because ``INSTALLED_APPS`` names ``apps``.
"""

from dynamo_single.admin.forms import FilteredSelect
from dynamo_single.admin.inlines import DynamoStackedInline, DynamoTabularInline
from dynamo_single.admin.options import DynamoModelAdmin
from dynamo_single.admin.sites import DynamoAdminSite

__all__ = ["DynamoAdminSite", "DynamoModelAdmin", "DynamoStackedInline", "DynamoTabularInline", "FilteredSelect"]
