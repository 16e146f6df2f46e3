"""One function for each of Django's expressions, registered with ``evaluation.evaluate()``."""
