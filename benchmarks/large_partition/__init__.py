"""What do reads cost if one partition key has 100,000 items?"""

from benchmarks import set_up

set_up()
