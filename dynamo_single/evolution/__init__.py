"""Models that change: what a migration knows of them, and the operations that carry items over."""
