"""What the operations of migrations do to an item: pure functions of the snapshots before and after, and the item."""
