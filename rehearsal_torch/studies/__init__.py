"""Studies: each reproduces the experiments of one paper, as worlds, methods, settings and seeds in stages."""
