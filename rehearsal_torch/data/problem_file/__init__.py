"""Problem files: data, variables, graph and desired region in one file, checked and compiled to a task."""
