"""Login methods of users: identifiers, telephone numbers, secrets, and the models that store them."""
