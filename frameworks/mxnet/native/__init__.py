"""LeNet split over devices by what MXNet itself has for it: contexts, and a kvstore."""
