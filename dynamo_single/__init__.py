"""A Django app that stores a project's data in one DynamoDB table.

Declare models with ``from dynamo_single import models``. This module imports nothing, so that settings can name the app
before Django is set up.
"""

__version__ = "0.1.0"
