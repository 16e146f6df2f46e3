"""Which mails and logins are counted, and how many are allowed."""
