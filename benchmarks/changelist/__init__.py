"""What does a page of the admin's changelist cost, compared with SQLite?"""

from benchmarks import set_up

set_up()
