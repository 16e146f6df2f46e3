"""The same project with a second table, whose key is ``id`` alone."""

from tests.isolated_project.settings import *  # noqa: F403 - settings modules build on each other by names

DYNAMO_SINGLE = {
    **DYNAMO_SINGLE,  # noqa: F405 - the project's
    "products": DYNAMO_SINGLE["default"].replace("?", "-products?") + "&key=id",  # noqa: F405 - the project's
}
