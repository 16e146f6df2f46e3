"""The demo's settings, with an address where nothing listens: these commands send no request."""

from project.settings import *  # noqa: F403 - settings modules build on each other by names

DYNAMO_SINGLE = {"default": "dynamodb://127.0.0.1:1/single-table?region=us-east-1"}
