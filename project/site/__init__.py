"""The demo's public site: what its pages share, the front page, and the commands that start and fill the demo."""
