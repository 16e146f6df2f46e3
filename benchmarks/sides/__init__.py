"""The sides of a comparison: each client with the same operations on the same items, as its documentation shows."""
