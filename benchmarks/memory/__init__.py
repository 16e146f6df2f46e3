"""How much memory does an object hold that was read from the table?"""

from benchmarks import set_up

set_up("benchmarks.settings")
