"""The operations of migration files, one module for each family."""
