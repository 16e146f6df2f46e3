"""What reading and writing through the app costs the client, against plain PynamoDB on the same items."""

from benchmarks import set_up

set_up()
