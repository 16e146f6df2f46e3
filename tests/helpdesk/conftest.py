"""The help desk is a project of its own: ``test_helpdesk.py`` runs it, and its tests, in processes."""

collect_ignore = ["desk", "helpdesk", "manage.py"]
