"""What does a page of the admin's list cost, beside the same on SQLite?"""

from benchmarks import set_up

set_up()
