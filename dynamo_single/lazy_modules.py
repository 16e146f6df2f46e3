"""Modules that are imported when something of them is first used: a process that never uses them starts sooner.

They are named at the top, as imports are, and type checkers see the import::

    if TYPE_CHECKING:
        from cryptography.hazmat.primitives.ciphers import aead
    else:
        aead = LazyModule("cryptography.hazmat.primitives.ciphers.aead")

This is for libraries that take milliseconds and for what most processes do without. Nothing of them can be used while
the module is imported that names them. This module must not know what is imported by it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for a module by its dotted name; each attribute is looked up in the module at that moment."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)
