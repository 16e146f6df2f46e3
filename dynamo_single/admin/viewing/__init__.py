"""Which objects a user may see: one rule for all pages, the log and the choices of forms."""
