"""The demo's chat: servers with many members each, members with a few servers each, and messages in order of time."""
