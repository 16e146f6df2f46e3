"""How far an operation walks through the app's code: calls, modules entered, and moves between them."""

from benchmarks import set_up

set_up("tests.settings", "benchmarks.walks")
