"""Celery's results in the table.

``result_backend = "dynamo_single.contrib.celery.backend:DynamoBackend"`` in Celery's settings, and
``"dynamo_single.contrib.celery"`` in ``INSTALLED_APPS``.
"""
