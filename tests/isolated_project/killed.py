"""A test that ends its process as ``kill -9`` does, so that the run cannot remove its table."""

import os
import signal

from django.test import TestCase


class Killed(TestCase):
    """The only test."""

    def test_the_process_ends(self) -> None:
        """At once."""
        os.kill(os.getpid(), signal.SIGKILL)
