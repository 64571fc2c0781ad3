"""A campaign: experiments are proposed, run and told one by one, and what is recommended is compared with the
truth after 10, 20, 26 and all of them. 26 is 1.3 times 20: with gaps, campaigns are to be as good after that.
"""

import time
from collections.abc import Mapping
from typing import Any

from rehearsal_torch.api.optimiser import CausalOptimiser
from rehearsal_torch.evaluation.claim_rows import Row
from reproduction.campaigns.worlds import SYSTEMS
from reproduction.plan import Job, study
from reproduction.record import Layout

KEY = ("world", "method", "seed")
NUMBERS = ("trials", "regret", "claims", "held", "allowed", "seconds")
LOG = (*KEY, "state", "rounds", "seconds", "commit", "message")
LOOKED = (10, 20, 26)


def layouts(options: Mapping[str, Any]) -> dict[str, Layout]:  # noqa: ARG001
    """Stage to the file of its rows, which all stages share."""
    return dict.fromkeys(study("campaigns")["stages"], Layout("campaigns.csv", KEY, (*KEY, *NUMBERS)))


def rows_of(options: Mapping[str, Any], job: Job) -> tuple[list[Row], Mapping[str, Any]]:
    """The rows of a campaign; seconds are processor time since the campaign began.

    Raises:
        ValueError: for overrides, which an optimiser in Python has none of.
    """
    if options["overrides"]:
        raise ValueError(f"expected no overrides of campaigns; got {options['overrides']}")
    began, rows = time.process_time(), list[Row]()
    system = SYSTEMS[job.world](job.seed)
    optimiser = CausalOptimiser(system.task, seed=job.seed, method=job.method, initial=system.initial)
    system.begin(optimiser)
    for number in range(1, options["trials"] + 1):
        given = system.context()
        (action,) = optimiser.ask(context=given)
        optimiser.tell(action, system.run({**action, **(given or {})}))
        # Where cells are missing there may be no model yet, and no recommendation.
        looked = number in LOOKED or number == options["trials"]
        if looked and not optimiser.task.lacking(optimiser.table.records()):
            scored = {"allowed": True} | system.scored(optimiser)
            numbers = {name: float(value) for name, value in scored.items()}
            key = {"world": job.world, "method": job.method, "seed": job.seed, "trials": number}
            rows.append(key | numbers | {"seconds": time.process_time() - began})
    return rows, {}
