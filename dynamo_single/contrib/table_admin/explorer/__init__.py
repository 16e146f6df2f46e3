"""The page of a range of items: forms for keys, conditions and filters, columns, and downloads."""
