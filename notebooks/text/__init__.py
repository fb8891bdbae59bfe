"""A chapter's text and listings, and the notebook that is made of them."""
