"""The log book: an admin page with the entries of all users. ``admin/log`` contains the model of the entries.

Only ``admin/sites`` reaches this folder. It does not write.
"""

from dynamo_single.contrib.logbook.page import listed, urls

__all__ = ["listed", "urls"]
