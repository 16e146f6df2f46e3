"""Django fields of times of day and of durations.

As ``fields`` does, they describe, validate and make form fields as Django's do.
"""

from __future__ import annotations

from datetime import time
from typing import Any

from django.db import models

from dynamo_single import clock
from dynamo_single.orm.schema.fields.fields import DynamoField


class TimeField(DynamoField, models.TimeField):  # type: ignore[type-arg]  # not generic at run time
    """A time of day."""

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """The time of day where the process runs, as Django's, by the app's clock."""
        if not (self.auto_now or (self.auto_now_add and add)):
            return super().pre_save(model_instance, add)
        setattr(model_instance, self.attname, present := clock.time_of_day())
        return present

    def save_form_data(self, instance: models.Model, data: object) -> None:
        """What a form gives, unless it is what the widget showed of the value, which is whole seconds."""
        before = getattr(instance, self.attname)
        if not (isinstance(data, time) and isinstance(before, time) and data == before.replace(microsecond=0)):
            super().save_form_data(instance, data)


class DurationField(DynamoField, models.DurationField):  # type: ignore[type-arg]  # not generic at run time
    """How long something takes."""
