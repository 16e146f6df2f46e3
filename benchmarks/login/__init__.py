"""What does a login cost, beside the same on SQLite?"""

from benchmarks import set_up

set_up()
