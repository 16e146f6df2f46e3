"""What users log in with: identifiers, telephone numbers, secrets, and the models that hold them."""
