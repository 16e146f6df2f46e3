"""Forms of documents: a row for each declared place of a map, and for each element of a list with declared elements.

``admin/editing/merging`` reaches this folder, and nothing else does.
"""

from dynamo_single.contrib.document_forms.maps import form_class_of

__all__ = ["form_class_of"]
