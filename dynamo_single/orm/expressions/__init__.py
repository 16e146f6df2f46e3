"""Django's expressions, computed in Python from the items that a bounded read holds.

``interpreter`` takes Django's own ``sql.Query`` apart: conditions that keys and filters support are read as in any
query, and the rest is computed of the matches. ``evaluation`` computes one expression; the other modules add one
function for each of Django's classes. ``scope.value_of()`` is the only place where a column becomes a value.
Other packages import it only when a query needs it.
"""
