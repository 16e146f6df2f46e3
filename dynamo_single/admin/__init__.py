"""Django's admin for models that live in DynamoDB.

The admin itself is Django's; the modules here answer only its hooks that would ask an SQL database. Nothing of this
package may import a model while apps are being loaded: ``apps`` below is named in ``INSTALLED_APPS``.
"""

from dynamo_single.admin.forms import FilteredSelect
from dynamo_single.admin.inlines import DynamoStackedInline, DynamoTabularInline
from dynamo_single.admin.options import DynamoModelAdmin
from dynamo_single.admin.sites import DynamoAdminSite

__all__ = ["DynamoAdminSite", "DynamoModelAdmin", "DynamoStackedInline", "DynamoTabularInline", "FilteredSelect"]
