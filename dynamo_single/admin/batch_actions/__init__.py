"""Actions on many objects: in batches, with a progress page that a user can leave and resume.

A worker runs the batches if the site has one; otherwise the page does.
"""
