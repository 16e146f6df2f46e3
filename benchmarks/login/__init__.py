"""What does a login cost, compared with SQLite?"""

from benchmarks import set_up

set_up()
