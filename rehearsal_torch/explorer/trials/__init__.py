"""Explorer, trials: a page on which experiments are asked for and their results are recorded."""
