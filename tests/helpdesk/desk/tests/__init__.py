"""The tests of the help desk: ``manage.py test``."""
