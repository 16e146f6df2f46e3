"""Requests in OpenTelemetry, Sentry and django-debug-toolbar.

Add ``"dynamo_single.contrib.observability"`` to ``INSTALLED_APPS``. The app reports to OpenTelemetry and Sentry if
their packages are installed. A project names the panel of the toolbar in ``DEBUG_TOOLBAR_PANELS``.
"""
