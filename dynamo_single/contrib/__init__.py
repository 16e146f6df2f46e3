"""Features that maintainers of the core need not know: a folder each, above everything else.

The core reaches each folder at one place, by an import at first use, so that projects do not need a setting for them.
The public module ``verification`` and some commands, which are above this folder, reach ``doctor``.
"""
