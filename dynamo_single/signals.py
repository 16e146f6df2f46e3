"""Signals of soft delete; saving and deleting for good send Django's own.

Receivers get ``sender`` (the model) and ``instance``.
"""

from __future__ import annotations

from django.db.models.signals import ModelSignal

#: Sent after an object went to the trash, and after it came back.
post_soft_delete = ModelSignal(use_caching=True)
post_restore = ModelSignal(use_caching=True)
