"""The Django app, which has the model of the results."""

from django.apps import AppConfig


class CeleryConfig(AppConfig):
    """Results of Celery."""

    name = "dynamo_single.contrib.celery"
    label = "dynamo_celery"
    verbose_name = "Celery results"
