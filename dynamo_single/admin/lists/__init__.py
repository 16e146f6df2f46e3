"""What a list page shows: read by a key, held in memory within a bound, or looked through step by step."""
