"""The demo's public site: shared templates, the front page, and the commands that start the demo and load its data."""
