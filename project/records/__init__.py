"""The demo's books: records of any shape with one identifier. Index keys contain values extracted from them."""
