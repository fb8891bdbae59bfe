"""The same two chapters in four frameworks; importing this package loads none of them."""
