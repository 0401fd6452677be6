"""Lines that are not ours: how they are started, watched and judged."""
