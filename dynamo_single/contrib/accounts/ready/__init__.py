"""All models of accounts, for a project that does not declare its own."""
