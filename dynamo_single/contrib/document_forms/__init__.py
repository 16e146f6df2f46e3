"""Forms for documents: a row for each declared key of a map, and for each element of a list with declared elements.

Only ``admin/editing/merging`` reaches this folder.
"""

from dynamo_single.contrib.document_forms.maps import form_class_of

__all__ = ["form_class_of"]
