"""Organizations with their members, tickets and comments."""
