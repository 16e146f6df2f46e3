"""Replace an interpreter for a program: request a child with the same command line and streams.

``python -IS ask.py ADDRESS OPTIONS ARGUMENTS`` imports little, which is what it is for, and ends as the child does.
"""

import json
import os
import socket
import sys

connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
arguments = [each for each in sys.argv[2:] if each != "-u"]  # without a buffer: its starter flushes too
wanted = {"arguments": arguments, "cwd": os.getcwd(), "env": {**os.environ}}  # noqa: PTH109 - pathlib takes a while
socket.send_fds(connection, [b"+"], [0, 1, 2])
connection.sendall(json.dumps(wanted).encode() + b"\n")
_, code = connection.makefile()
sys.exit(int(code))
