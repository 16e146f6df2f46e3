"""How long does one wait for a list over shards?"""

from benchmarks import set_up

set_up()
