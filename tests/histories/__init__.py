"""An app whose models tests declare, change and forget, with migrations of their own."""
