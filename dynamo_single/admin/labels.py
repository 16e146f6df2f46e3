"""The attribute of log entries and jobs that names the model of their objects."""

from __future__ import annotations

from dynamo_single import models


class ModelLabel(models.UnicodeAttribute):
    """The label of a model, which ``RenameModel`` replaces."""

    holds_labels = True
