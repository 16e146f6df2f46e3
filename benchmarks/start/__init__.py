"""What does it cost to start, and to send the first request?"""

from benchmarks import set_up

set_up()
