"""What all other rooms need: errors, arrays, files, processes, the machine."""
