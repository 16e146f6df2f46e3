"""The same project with a second table, which it does not own; the first one is its companion."""

from tests.isolated_project.settings import *  # noqa: F403 - settings modules build on each other by names

DYNAMO_SINGLE = {
    **DYNAMO_SINGLE,  # noqa: F405 - the project's
    "theirs": DYNAMO_SINGLE["default"].replace("?", "-theirs?") + "&owns=false&companion=default",  # noqa: F405 - the project's
}
