"""The users of this project."""
