"""The processes that a launcher starts: who they are, how they meet, and how all of them end."""
