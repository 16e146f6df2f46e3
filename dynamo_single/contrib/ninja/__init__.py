"""Responses for the app's errors, and a type of sets, for django-ninja.

Import this module before you declare schemas.
"""

from dynamo_single.contrib.ninja.connecting import connect

__all__ = ["connect"]
