"""Texts to telephones, which the demo shows where the server runs, as it does its mails."""

from __future__ import annotations

import sys


def show(number: str, text: str) -> None:
    """Print a text in the place of sending it."""
    sys.stdout.write(f"\nText to {number}: {text}\n")
    sys.stdout.flush()
