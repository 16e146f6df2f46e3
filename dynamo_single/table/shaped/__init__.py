"""Translate requests and responses by the shape of a table; only tables with names of their own enter this package.

All code above the table uses the app's own names, and keys that are texts. ``Table`` translates at one place.
"""
