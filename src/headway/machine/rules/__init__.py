"""What is wrong with a machine for a run: facts come in, findings go out. One file per subject."""
