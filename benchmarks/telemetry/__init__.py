"""What do spans and metrics add to the CPU of an HTTP request?"""

from benchmarks import set_up

set_up()
