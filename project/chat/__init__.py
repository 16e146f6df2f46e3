"""The demo's chat: servers with many members, members with a few servers, and messages in order of time."""
