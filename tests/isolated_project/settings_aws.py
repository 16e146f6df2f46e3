"""The same project, whose table is at AWS."""

from tests.isolated_project.settings import *  # noqa: F403 - settings modules build on each other by names

DYNAMO_SINGLE = {"default": "dynamodb:///notes?region=eu-west-1"}
