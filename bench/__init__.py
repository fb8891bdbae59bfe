"""Times the four frameworks here, and the usual high-level loops."""
