"""What does an operation cost the client's CPU, compared with other clients and the floor?"""

from benchmarks import set_up

set_up("benchmarks.settings")
