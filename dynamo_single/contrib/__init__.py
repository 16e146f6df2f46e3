"""Features outside the core: one folder each, above everything else.

The core reaches each folder at one place, by an import at first use. Projects therefore do not need a setting for them.
The public module ``verification`` and some commands, which are above this folder, reach ``doctor``.
"""
