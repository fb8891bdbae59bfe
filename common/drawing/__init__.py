"""Pictures of plans as SVG: colours, shapes, timelines, memory, and who has what."""
