"""Tensors in, numbers out: what every head of a forward pass does. Knows no plot and no page."""
