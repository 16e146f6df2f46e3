"""The path of an operation through the app's code: calls, entered modules, and moves between them."""

from benchmarks import set_up

set_up("tests.settings", "benchmarks.walks")
