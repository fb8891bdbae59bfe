"""What a person types and sees on a terminal."""
