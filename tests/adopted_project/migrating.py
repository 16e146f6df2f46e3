"""The tests' settings with a default table that the app does not own, for processes that change its items."""

from tests.settings import *  # noqa: F403 - settings modules build on each other by names

_PLACE = env.str("DYNAMO_PLACE", "127.0.0.1:1")  # noqa: F405 - the demo's
_QUERY = "region=us-east-1&indexes=gs1,gs2,gs3"
ADOPTED = {
    "default": f"dynamodb://{_PLACE}/migrated?{_QUERY}&owns=false&companion=own",
    "own": f"dynamodb://{_PLACE}/migrating?{_QUERY}",
}
DYNAMO_SINGLE = {**DYNAMO_SINGLE, **ADOPTED}  # noqa: F405 - the demo's
