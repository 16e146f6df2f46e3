"""Actions on many objects: in batches, with a progress page that a user can leave and resume. No worker is needed."""
