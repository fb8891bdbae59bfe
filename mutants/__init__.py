"""Small changes of the code that decides numbers: runs or tests should notice each."""
