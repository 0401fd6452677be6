"""One training step on fake tensors, in a child: a recipe or a script comes in, what it keeps and computes goes out."""
