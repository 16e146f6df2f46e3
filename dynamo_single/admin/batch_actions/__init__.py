"""Actions on many objects: in batches, with a page of progress that can be left and resumed. No worker is needed."""
