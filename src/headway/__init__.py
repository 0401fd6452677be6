"""Headway takes a training job from one file to a finished model."""

__version__ = "0.1.0"
