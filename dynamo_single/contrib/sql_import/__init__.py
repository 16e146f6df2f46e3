"""Import the rows of an SQL database as objects: ``manage.py dynamo_import_sql``."""
