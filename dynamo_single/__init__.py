"""A Django app that keeps a project's data in one DynamoDB table.

Models are declared with ``from dynamo_single import models``. Nothing is imported here, so that settings can name the
app before Django is set up.
"""

__version__ = "0.1.0"
