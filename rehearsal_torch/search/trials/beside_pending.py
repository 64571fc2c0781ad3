"""A decision beside experiments that are under way: what to try next while their results are waited for.

What to try is searched for under an objective that is aware of the pending trials (`search.trials.pending`).
If it is one of these, the best of many space-filling points takes its place (`search.trials.proposal`). What
is claimed, and which action is recommended for good, follows from the completed trials alone: an imputed
outcome is no observation.

Source: Ginsbourger et al. (2010), Sec. 4.2 ("kriging believer"); Balandat et al. (2020), App. F (pending
points).
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import torch

from rehearsal_torch.data.decision import Decision, RehearsalCase
from rehearsal_torch.data.trials.log import TrialLog
from rehearsal_torch.objectives.trials.expected_reward import CausalObjective
from rehearsal_torch.search.budget import UNLIMITED
from rehearsal_torch.search.search import Search
from rehearsal_torch.search.trials.acquisition import decided
from rehearsal_torch.search.trials.pending import aware_of_pending
from rehearsal_torch.search.trials.proposal import NothingLeftError, another_action
from rehearsal_torch.search.trials.recommendation import recommend
from rehearsal_torch.seeding import round_seed
from rehearsal_torch.surrogates.network.causal_model import CausalModel


def decided_beside(
    make: Callable[..., CausalObjective],
    search: Search[CausalObjective],
    model: CausalModel,
    case: RehearsalCase,
    log: TrialLog,
    seed: int,
) -> tuple[CausalObjective, Decision]:
    """The decision of a round, and the objective of the completed trials by which it is claimed.

    Where all that could be tried waits for its result, or has failed, it sets nothing and says so; what to
    keep is recommended as ever.

    Args:
        make: Returns the objective for (model, case), and for ``pending``, (p, k), if it takes it.
        search: Finds the action to try.
        model: Fitted to the completed trials; it stays as it is.
        case: The round.
        log: The trials, some of them pending.
        seed: Together with the identity of the round, determines the starts of the recommendation.
    """
    plain = make(model, case)
    aware = aware_of_pending(make, deepcopy(model), case, log)
    found = search(aware)
    if found.alteration is None:
        return plain, found
    setting = dict(zip(found.alteration.names, found.alteration.values.tolist(), strict=True))
    action = torch.tensor([setting[name] for name in log.task.actions], dtype=torch.float64)
    value = found.value
    if bool(log.contains(action, "pending", "failed")):
        try:
            action = another_action(aware, log, seed)
        except NothingLeftError as error:
            return plain, _nothing_left(plain, found, case, seed, str(error))
        with torch.no_grad():
            value = float(aware(torch.nn.functional.pad(action.to(plain.noise), (0, aware.further))[None])[0])
    recommended = recommend(plain, round_seed(seed, case.identity))
    action = action.to(recommended.action)
    claimed = decided(plain, action, value, recommended, str(found.trace.get("search", "")), UNLIMITED, {})
    trace = {key: each for key, each in found.trace.items() if key != "runner_up"}
    counted = found.trace.get("evaluations", 0) + recommended.evaluations
    return plain, replace(
        found,
        alteration=claimed.alteration,
        value=value,
        estimate=claimed.estimate,
        recommendation=claimed.recommendation,
        trace={**trace, **claimed.trace, "evaluations": counted, "pending": len(log.in_states("pending"))},
    )


def _nothing_left(
    plain: CausalObjective, found: Decision, case: RehearsalCase, seed: int, reason: str
) -> Decision:
    """The decision that sets nothing, with the action to keep."""
    recommended = recommend(plain, round_seed(seed, case.identity))
    kept = decided(
        plain, recommended.action, found.value, recommended, str(found.trace.get("search", "")), UNLIMITED, {}
    )
    trace = {name: each for name, each in kept.trace.items() if name != "predicted_reward"}
    return replace(
        found,
        alteration=None,
        status="no_action",
        estimate=kept.estimate,
        recommendation=kept.recommendation,
        reason=reason,
        trace=trace,
    )
