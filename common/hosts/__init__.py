"""The processes that a launcher starts: their ranks, how they connect, how all of them end."""
