"""How it is measured and reported, the same for every question."""
