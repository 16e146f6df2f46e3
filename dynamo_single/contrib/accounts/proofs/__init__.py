"""Signed links and codes that prove whose an address or a telephone number is."""
