"""Django has tasks since 6.0: ``make test-versions`` runs these tests."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("django.tasks") is not None else ["test_*.py"]
