"""A Django project without an SQL database: the demo, and an example of the settings."""
