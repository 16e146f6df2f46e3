"""How much memory does an object from the table hold?"""

from benchmarks import set_up

set_up("benchmarks.settings")
