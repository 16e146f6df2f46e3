"""How long does one wait for reads that need not wait for each other?"""

from benchmarks import set_up

set_up("benchmarks.settings")
