"""Actions on many objects: in batches, with a progress page that a user can leave and resume. It does not need a
worker.
"""
