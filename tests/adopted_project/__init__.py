"""A project whose default table belongs to other programs."""
