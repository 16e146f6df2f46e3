"""The admin's pages about the table itself: its items, its access patterns, its health, and the cost of each page.

Only ``admin/sites`` reaches this folder. It does not write, except the sample of a table.
"""

from dynamo_single.contrib.table_admin.cost_panel import with_panel
from dynamo_single.contrib.table_admin.pages import listed, urls
from dynamo_single.contrib.table_admin.views import item_url_of

__all__ = ["item_url_of", "listed", "urls", "with_panel"]
