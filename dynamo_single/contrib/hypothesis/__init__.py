"""Strategies of Hypothesis for models: ``from_model(Company)`` draws stored objects."""

from dynamo_single.contrib.hypothesis.strategies import from_field, from_model

__all__ = ["from_field", "from_model"]
