"""Limits on login attempts and on requested e-mails, and their counters."""
