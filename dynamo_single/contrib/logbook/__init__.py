"""The log book: a page of the admin with the entries of all users. The entries' model is in ``admin/log``.

``admin/sites`` reaches this folder, and nothing else does. It only reads.
"""

from dynamo_single.contrib.logbook.page import listed, urls

__all__ = ["listed", "urls"]
