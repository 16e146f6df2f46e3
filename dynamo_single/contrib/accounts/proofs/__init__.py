"""Signed links and codes that prove that an address or a telephone number belongs to a user."""
