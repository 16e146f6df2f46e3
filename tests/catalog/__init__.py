"""An app of models that only the tests need."""
