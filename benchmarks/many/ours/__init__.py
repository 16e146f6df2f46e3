"""A hundred models of ours."""
