#!/usr/bin/env python
"""Django's command line for this project."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        # A wrong value in the environment is reported in one line, as wrong arguments are.
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"ImproperlyConfigured: {error}")
