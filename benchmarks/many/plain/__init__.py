"""A hundred models of Django's."""
