"""What a run is to do: chapters, presets, flags, the configuration."""
