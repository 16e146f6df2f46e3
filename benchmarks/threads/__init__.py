"""Do threads get more done than one does?"""

from benchmarks import set_up

set_up("benchmarks.settings")
