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

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class LazyModule:
    """A proxy for a module by its dotted name.

    The first access to an attribute imports the module, and puts it in place of the proxy in the module that declared
    the proxy. A proxy that was taken from there before looks each attribute up in the module.
    """

    __slots__ = ("_module", "_name", "_owner")

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None
        self._owner: dict[str, Any] = sys._getframe(1).f_globals

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            # Another thread that is importing it is waited for.
            self._module = import_module(self._name)
            for name in [name for name, value in list(self._owner.items()) if value is self]:
                self._owner[name] = self._module
        return getattr(self._module, attribute)
