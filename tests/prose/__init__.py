"""Check that pages, docstrings, comments and messages read as plain English: ``python -m tests.prose``."""
