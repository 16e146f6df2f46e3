"""Do asynchronous reads overlap?"""

from benchmarks import set_up

set_up("benchmarks.settings")
