"""Django REST framework over keys: filters, cursors, errors, fields and tokens.

Nothing in ``dynamo_single`` imports this folder: a project names its classes in its views or in ``REST_FRAMEWORK``.
Only the tokens need ``"dynamo_single.contrib.rest_framework"`` in ``INSTALLED_APPS``.
"""
