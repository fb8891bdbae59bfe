"""Plans of splitting a net over devices, schedules of allreduces, and what both send and keep."""
