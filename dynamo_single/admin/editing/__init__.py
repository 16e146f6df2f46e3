"""The change form: additional content, concurrent edits, and saving."""
