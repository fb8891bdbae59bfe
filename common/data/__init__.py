"""The images, and the minibatches drawn from them."""
