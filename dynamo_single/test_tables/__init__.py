"""Test tables: making them, giving each test what it found, emptying them, and keeping tests away from other tables.

Private. Django's runner and pytest come in by ``hooks``, a project without SQL by ``dynamo_single.backend``; what a
project may use is in ``dynamo_single.testing``. It must not know models.
"""
