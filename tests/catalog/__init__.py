"""An app of models that only the tests need."""

from tests import other_names

# Every process of the tests that has models imports this package before it uses a table.
other_names.install()
