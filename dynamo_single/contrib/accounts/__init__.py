"""Users in DynamoDB who log in by e-mail address, user name, telephone number or an external account."""
