"""The baseline without DynamoDB: the same data in tables of SQLite."""
