"""Translate requests and responses by the shape of a table; only tables with names of their own enter this package.

All code above the table uses the app's own names, and strings as keys. ``ShapedTable`` translates at one place.
"""
