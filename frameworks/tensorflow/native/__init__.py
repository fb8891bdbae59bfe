"""LeNet split over devices by what TensorFlow itself has for it: DTensor's layouts."""
