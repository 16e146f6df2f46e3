"""The keys that a model declares; ``models`` has them too."""

from dynamo_single.orm.schema.encoding.keys import IndexKey, Key, canonical

__all__ = ["IndexKey", "Key", "canonical"]
