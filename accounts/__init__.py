"""Users in DynamoDB who log in by e-mail address or by user name."""
