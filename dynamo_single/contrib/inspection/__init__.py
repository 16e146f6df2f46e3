"""Propose settings and models for an existing table, or for a PynamoDB class, as Python source.

- ``sample`` reads a bounded part of a table, and ``samples`` shows some of its values.
- ``keys``, ``words`` and ``grouping`` divide the items into kinds, by their type or by the patterns of their
  keys.
- ``templates``, ``attributes``, ``references`` and ``modelling`` make a model of each kind; ``describing`` combines
  them.
- ``pynamodb_models`` and ``pynamodb_attributes`` read a PynamoDB class instead.
- ``proposal`` has the result as values. ``names`` and ``source`` write it as Python, with names as escaped literals.

Only the command ``dynamo_inspect`` uses this folder.
"""
