"""Pages of the admin that show the table itself, and not the objects of one model. All of them only read."""
