"""How long does a list over shards take?"""

from benchmarks import set_up

set_up()
