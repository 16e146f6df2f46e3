"""The Django database engine of a project without an SQL database.

With ``DATABASES = {"default": {"ENGINE": "dynamo_single.backend"}}``, every part of Django that opens a transaction,
looks for migrations or prepares a test run finds a connection. The engine sends no requests and holds no data. Models
of ``dynamo_single`` do not use it, and an SQL query that reaches it raises ``NotSupported``.

The engine does not do the following:

- Roll back DynamoDB. ``transaction.atomic()`` keeps Django's own bookkeeping (nesting, savepoints, ``durable``,
  ``on_commit``, ``set_rollback``), but items that were written inside the block stay written even if the block fails. A
  block that fails after such a write emits ``NotRolledBackWarning``, or raises ``NotRolledBack`` with ``"OPTIONS":
  {"rollback_after_writes": "error"}``. The engine sets Django's ``supports_transactions`` to False, so that a
  ``TestCase`` creates its data before each test rather than relying on a rollback.
- Run migrations of SQL models. A migration counts as applied as soon as it is on disk, without running its operations,
  unless its app or a dependency of it has operations on items: see ``dynamo_single.evolution``.
- Empty a table of the settings: ``flush`` does not change it. It does create, copy, empty and remove test tables.

The engine must not depend on requests or on the layout of items.
"""
