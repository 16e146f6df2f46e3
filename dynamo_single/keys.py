"""The keys that a model declares; ``models`` exports them too."""

from dynamo_single.orm.schema.keys.shards import Shards
from dynamo_single.orm.schema.keys.template import IndexKey, Key, canonical

__all__ = ["IndexKey", "Key", "Shards", "canonical"]
