"""Import modules on first use: a process that never uses them starts faster.

They are declared at the top like imports, and type checkers see the import::

    if TYPE_CHECKING:
        from cryptography.hazmat.primitives.ciphers import aead
    else:
        aead = LazyModule("cryptography.hazmat.primitives.ciphers.aead")

Use it for libraries that take milliseconds to import and that most processes do not need. A module cannot use them
while it is being imported itself. This module does not depend on the modules that it imports.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """A proxy for a module by its dotted name; each access to an attribute looks it up in the module."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)
