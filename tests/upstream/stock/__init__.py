"""The user, the group and the stores that upstream's tests find in the places of Django's own."""
