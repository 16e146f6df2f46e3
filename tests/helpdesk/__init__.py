"""A help desk, built as a project from the documentation alone; ``make test-helpdesk`` runs its tests."""
