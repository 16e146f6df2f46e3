"""Migrations of items: snapshots of models, and the operations that convert items."""
