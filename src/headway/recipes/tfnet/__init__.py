"""TFNet on CE-CSL: continuous sign language recognition, in MindSpore and in PyTorch."""
