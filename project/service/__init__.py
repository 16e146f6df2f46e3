"""The demo's user service: users and e-mail addresses, in partitions that are divided into shards."""
