"""What checkers are told that an admin and a list of ours are, below the modules that make them.

At run time the names are Django's own classes, of which every one of ours is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynamo_single.admin.lists.changelist import KeyChangeList
    from dynamo_single.admin.options import DynamoModelAdmin
else:
    from django.contrib.admin import ModelAdmin as DynamoModelAdmin
    from django.contrib.admin.views.main import ChangeList as KeyChangeList

__all__ = ["DynamoModelAdmin", "KeyChangeList"]
