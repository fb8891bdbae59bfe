"""What a framework has to provide, and how its backend is loaded."""
