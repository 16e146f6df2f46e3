"""The keys that a model declares; ``models`` has them too."""

from dynamo_single.orm.schema.encoding.keys import IndexKey, Key, canonical
from dynamo_single.orm.schema.encoding.shards import Shards

__all__ = ["IndexKey", "Key", "Shards", "canonical"]
