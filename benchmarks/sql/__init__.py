"""The baseline that is no DynamoDB: the same data in tables of SQLite."""
