"""Plans of splitting a net, schedules of allreduces, and what they send and keep."""
