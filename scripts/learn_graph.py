"""Learns rehearsal graphs from a table: python scripts/learn_graph.py data=table.csv context=a,b
outcomes=y.
"""

import sys

from rehearsal_torch.console_command import run

if __name__ == "__main__":
    sys.exit(run("learn_graph"))
