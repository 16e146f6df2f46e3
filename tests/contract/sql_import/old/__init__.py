"""The models of the catalog as they would be in SQL databases; only registries of their own know them."""
