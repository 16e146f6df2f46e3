"""Relations in steps: each model is read by its own keys, and each step filters by the keys of the step before.

DynamoDB has no joins. ``paths`` follows the names of a condition to other models. ``filters`` replaces a condition on
another model's attribute by a queryset of keys, which ``steps`` reads. Other packages import it when a query
names a relation.
"""
