"""Pictures of the table, drawn from a stored sample."""
