"""The demo's project in a table that it does not own: the app's own items are in its companion."""

from project.settings import *  # noqa: F403 - settings modules build on each other by names

_PLACE = env.str("DYNAMO_PLACE", "127.0.0.1:1")  # noqa: F405 - the demo's
_QUERY = "region=us-east-1&indexes=gs1,gs2,gs3"
DYNAMO_SINGLE = {
    "default": f"dynamodb://{_PLACE}/theirs?{_QUERY}&owns=false&companion=own",
    "own": f"dynamodb://{_PLACE}/own?{_QUERY}",
}
CACHES = {
    "default": {
        "BACKEND": "dynamo_single.cache.DynamoCache",
        "LOCATION": "own",
        "OPTIONS": {"LARGE_VALUES": "split"},
    }
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
