"""How long do independent reads take together?"""

from benchmarks import set_up

set_up("benchmarks.settings")
