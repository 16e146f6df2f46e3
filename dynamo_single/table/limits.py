"""What DynamoDB takes at most."""

#: The most keys of one BatchGetItem (AWS API reference, BatchGetItem).
MAX_BATCH_KEYS = 100


#: The most actions of one transaction (AWS API reference, TransactWriteItems).
MAX_ACTIONS = 100


#: The most items that one page of a Query or Scan can hold: 1 MB (AWS API reference, Query) of items that are no more
#: than the names and values of their two keys. A larger ``Limit`` reads no more, and past 2**31-1 it is refused.
MAX_PAGE_ITEMS = 1024 * 1024 // 6
#: The most writes of one BatchWriteItem (AWS API reference, BatchWriteItem).
MAX_BATCH_WRITES = 25
#: The most bytes of all items of one transaction (AWS API reference, TransactWriteItems).
MAX_TRANSACTION_SIZE = 4 * 1024 * 1024
#: The largest item that DynamoDB stores, in bytes (AWS: "Quotas in Amazon DynamoDB", item size).
MAX_ITEM_SIZE = 409_600
