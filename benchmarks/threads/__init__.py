"""Do several threads achieve more than one thread?"""

from benchmarks import set_up

set_up("benchmarks.settings")
