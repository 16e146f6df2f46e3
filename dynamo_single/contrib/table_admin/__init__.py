"""The admin's pages about the table itself: its items, its access patterns, its health, and what each page costs.

``admin/sites`` reaches this folder, and nothing else does. All of it only reads.
"""

from dynamo_single.contrib.table_admin.cost_panel import with_panel
from dynamo_single.contrib.table_admin.pages import listed, urls
from dynamo_single.contrib.table_admin.views import item_url_of

__all__ = ["item_url_of", "listed", "urls", "with_panel"]
