"""What a maintainer of the core need not know: a folder each, on top of everything else.

The core reaches each folder at one place, by an import at first use: no project has a line for them in its settings.
The doctor is reached by the public module ``verification`` and by commands, which are above this folder.
"""
