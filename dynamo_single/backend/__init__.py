"""The Django database engine of a project that has no SQL database.

With ``DATABASES = {"default": {"ENGINE": "dynamo_single.backend"}}`` every part of Django that opens a transaction,
looks for migrations or prepares a test run finds a connection. The engine sends no requests and holds no data: models
of ``dynamo_single`` never pass through it, and an SQL query that reaches it raises ``NotSupported``.

What it does not do:

- It does not roll DynamoDB back. ``transaction.atomic()`` keeps Django's own bookkeeping (nesting, savepoints,
  ``durable``, ``on_commit``, ``set_rollback``), but an item that was written inside the block stays written, whether
  the block fails or not. A block that fails after such a write warns of it (``NotRolledBackWarning``); with
  ``"OPTIONS": {"rollback_after_writes": "error"}`` it raises ``NotRolledBack``. The engine says
  to Django that it has no transactions (``supports_transactions`` is False), so that a ``TestCase`` makes its data
  before each test instead of counting on a rollback.
- It does not run migrations. Every migration on disk counts as applied and none of its operations runs, ``RunPython``
  included. Items are changed by a management command or by code of the project.
- It does not empty a table of the settings: ``flush`` leaves it as it is. Test tables it makes, copies, empties and
  removes, as ``isolation`` knows how.

It must not know requests or the layout of items.
"""
