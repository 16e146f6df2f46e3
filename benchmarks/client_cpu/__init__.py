"""The client's cost of reads and writes through the app, compared with plain PynamoDB on the same items."""

from benchmarks import set_up

set_up()
