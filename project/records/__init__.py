"""The demo's books: records of any shape under one identifier, with what an index needs extracted from them."""
