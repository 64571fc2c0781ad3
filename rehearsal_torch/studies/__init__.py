"""Studies: reproductions of published results."""
