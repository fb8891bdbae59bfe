"""What a framework promises, and how its backend is loaded and launched."""
