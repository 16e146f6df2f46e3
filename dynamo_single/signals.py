"""The signals of soft delete. Saving and permanent deletion send Django's own signals.

Receivers get ``sender`` (the model) and ``instance``.
"""

from __future__ import annotations

from django.db.models.signals import ModelSignal

#: Sent after an object was moved to the trash, and after it was restored.
post_soft_delete = ModelSignal(use_caching=True)
post_restore = ModelSignal(use_caching=True)
