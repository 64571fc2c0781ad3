"""The papers' tables and figures, made from jobs that users could type: ``python -m reproduction.auf``.

Each paper has a folder with

    study.yaml        worlds, methods, settings, seeds, stages; overrides as typed for scripts/decide.py
    published.yaml    the numbers printed in the paper, for comparison
    text.md           the paragraphs of its page, one section each, with {placeholders}
    jobs.py           the rows of a job
    documents.py      the tables and figures, from the rows

and makes ``docs/results/PAPER``. Sums over threads have no fixed order, and jobs run in several processes:
each process has one thread.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
