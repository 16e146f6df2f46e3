"""Send the app's requests without botocore's events: connections, signatures and retries.

Each module implements one step, and ``table/transport`` combines them. The app itself sends only the operations in
``answers.OPERATIONS``; botocore sends a project's other operations. All errors are botocore's exceptions, so callers do
not depend on which of the two request paths sent a request.
"""
