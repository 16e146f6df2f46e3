"""What a table holds and how it is read, for people to look at: items with their keys explained, and access patterns.

Read-only. Secrets are masked before anything leaves this folder, and what is not for somebody's eyes is left out.
"""
