"""The list page: rows served by a key, held in memory within a bound, or scanned step by step."""
