"""What everything rests on: errors, arrays, files, processes, the machine."""
