"""A hundred models of each side, whose declarations are a part of a start."""
