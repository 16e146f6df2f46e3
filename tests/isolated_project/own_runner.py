"""A script that runs tests by Django's runner itself, as reusable apps do."""

import sys

import django
from django.test.runner import DiscoverRunner

if __name__ == "__main__":
    django.setup()
    sys.exit(DiscoverRunner(interactive=False).run_tests(sys.argv[1:]))
