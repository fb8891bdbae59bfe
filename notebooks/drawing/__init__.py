"""The pictures of the chapters, as SVG, from the project's own schedules and rules."""
