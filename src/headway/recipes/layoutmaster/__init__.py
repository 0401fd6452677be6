"""LayoutMaster: a diffusion transformer that moves the layers of a poster to where they belong."""
