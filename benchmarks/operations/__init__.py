"""What does an operation cost the client's CPU, beside every other client and beside the floor?"""

from benchmarks import set_up

set_up("benchmarks.settings")
