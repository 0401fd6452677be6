"""RDT: a diffusion transformer that turns pictures, a sentence and the arm's state into a chunk of actions."""
