"""Test tables: create them, restore them after each test, empty them, and keep tests away from other tables.

This package is private. Django's test runner and pytest use it through ``hooks``, and a project without SQL through
``dynamo_single.backend``. A project's tests use ``dynamo_single.testing``. The package must not depend on models.
"""
