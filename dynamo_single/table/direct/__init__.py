"""A request path of our own for operations on items: connections, signatures and retries, without botocore's events.

Each module is one step; ``client`` puts them together. Raises botocore's own exceptions, so that whoever sends need not
know which of the two request paths it was.
"""
