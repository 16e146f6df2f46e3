"""A hundred models of each side. Their declarations are a part of the start-up."""
