"""CPU seconds of each decision for a patient, by a method, with the models of a checkpoint.

Each decision is that of a run with one process: the search, what would overturn it, and its line, whose bytes
are counted.

Run, as a script: python -m benchmarks.scale.patients CHECKPOINT METHOD PATIENTS
"""

import json
import sys
import time
from contextlib import redirect_stdout

from hydra import compose, initialize_config_dir

from rehearsal_torch.checkpoint import load
from rehearsal_torch.cli.batch_decisions import played
from rehearsal_torch.methods.hydra_config import CONF
from rehearsal_torch.methods.run_parts import build


def main(checkpoint: str, method: str, count: int) -> dict[str, list[float]]:
    """CPU seconds and bytes of each of the first decisions."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("config", ["+experiment=sepsis", f"decision={method}"])
    with redirect_stdout(sys.stderr):
        run = build(config)
        surrogate = load(checkpoint, task=run.problem.question())
        rounds = played(run, surrogate, range(min(count, run.problem.count())))
        seconds, sizes, began = list[float](), list[float](), time.process_time()
        for each in rounds:
            sizes.append(len(each.line().encode()) + 1)
            seconds.append(round(time.process_time() - began, 4))
            began = time.process_time()
    return {"cpu": seconds, "bytes": sizes}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
