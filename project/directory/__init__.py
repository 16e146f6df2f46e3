"""The demo: companies, their people and their offices."""
