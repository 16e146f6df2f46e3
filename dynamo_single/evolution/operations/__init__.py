"""The operations that a migration file names; one file for each family."""
