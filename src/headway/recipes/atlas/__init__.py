"""Atlas: VGGT's sense of space and a language encoder, fused into one robot action a frame."""
