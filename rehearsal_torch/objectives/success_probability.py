"""The probability of success under a posterior of rehearsal models, and what a round would teach about them.

An alteration z of one set of variables has two sides: the probability of success, E_{G, theta} P(Y in S | G,
theta, x, z), estimated by the share of sampled scenarios that become desired, and the information that the
row to come carries about the model. Policies differ in what they make of them: Qin et al. maximise the
information where the probability is at least tau; who only wants to succeed now maximises the probability.

Three samples, each with models and noise of its own: one that a search sees, one that validates what it
found, and one that says how probable success is in the end. A fourth, smaller, is for the information.

Source: Qin et al. (2023), Eq. 5-6 and Sec. 4.2-4.3; the third sample is ours.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from rehearsal_torch.data.decision import Foresight
from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.information import Entropy, Information
from rehearsal_torch.objectives.objective import Appraisal, chance
from rehearsal_torch.objectives.scenario_success import CountObjective, Scenarios, rowwise
from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.structural.sampled_models import SampledModels, ScenarioModel

SEEK, CHOOSE, JUDGE, TEACH, STAGES = 0, 1, 2, 3, 8


class SuccessProbability(CountObjective):
    """The probability of success for one set of altered variables in B situations.

    Args:
        situations: The B situations.
        names: The k altered variables.
        seek: Scenarios that a search sees.
        choose: Others, that validate what it found.
        judge: Others again, that say what is expected of the choice.
        before: The probability of success with nothing altered, (B,).
        information: What a round would teach.
    """

    def __init__(
        self,
        situations: Sequence[Foresight],
        names: Sequence[str],
        seek: Scenarios,
        choose: Scenarios,
        judge: Scenarios,
        before: Tensor,
        information: Information,
    ) -> None:
        super().__init__(situations, names, seek, choose)
        self.judge, self.before, self.information = self.counted(judge), before, information

    def share_of(self, index: int, actions: Tensor, *, validating: bool = True) -> Tensor:
        """The share of desired scenarios in one of the situations, (m, k) -> (m,), by the validating sample
        or by that which a search sees.
        """
        part = (self.choose if validating else self.seek).one(index)
        return part.share((actions - self.origin[index].to(actions)).unsqueeze(-2)).squeeze(-1)

    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """The probability, and the probability with nothing altered."""
        shares = self.judge.share(actions - self.origin.to(actions)).tolist()
        return [
            Appraisal(chance(done), chance(undone))
            for done, undone in zip(shares, self.before.tolist(), strict=True)
        ]


class SuccessProbabilities(Candidates[SuccessProbability]):
    """The probability of success for every candidate set of a task.

    Args:
        surrogate: A fitted posterior of rehearsal models.
        situations: The B situations.
        seek: Scenarios that a search sees.
        choose: Others, that validate what it found.
        judge: Others again, that say what is expected of the choice.
        teach: Models from which the information is estimated.
        entropy: How.
        seed: Decides all of them.

    Raises:
        ValueError: if a number is not positive.
    """

    def __init__(
        self,
        surrogate: ScenarioModel,
        situations: Sequence[Foresight],
        seek: int = 10000,
        choose: int = 10000,
        judge: int = 1000,
        teach: int = 300,
        entropy: Entropy = "predictive",
        seed: int = 0,
    ) -> None:
        if min(seek, choose, judge, teach) < 1:
            raise ValueError(
                f"expected seek, choose, judge and teach >= 1; got {seek}, {choose}, {judge} and {teach}"
            )
        contexts = surrogate.task.given(situations)
        models = [
            surrogate.sampled(count, STAGES * seed + stage)
            for stage, count in ((SEEK, seek), (CHOOSE, choose), (JUDGE, judge), (TEACH, teach))
        ]
        before = scenarios_of(surrogate, models[JUDGE], contexts, ()).share(
            contexts.new_empty(len(contexts), 0)
        )
        found = []
        for names in surrogate.task.candidates:
            seen, other, last = (scenarios_of(surrogate, each, contexts, names) for each in models[:TEACH])
            information = Information(surrogate, models[TEACH], contexts, names, entropy)
            found.append(
                SuccessProbability(situations, names, mixed(seen, seed), other, last, before, information)
            )
        super().__init__(situations, found, surrogate)


def scenarios_of(
    surrogate: ScenarioModel, models: SampledModels, contexts: Tensor, names: Sequence[str]
) -> Scenarios:
    """Which scenarios of some models are desired: contexts (B, |X|)."""
    outcomes = models.scenarios(contexts, names).only(surrogate.task.outcomes)
    return rowwise(outcomes.offset.movedim(0, 1), outcomes.slope, surrogate.task.region)


def mixed(scenarios: Scenarios, seed: int) -> Scenarios:
    """The scenarios in an order drawn at random: models come sorted by graph, and a program takes the first
    of them.
    """
    return scenarios.some(
        torch.randperm(len(scenarios.gains), generator=generator(seed)).to(scenarios.gains.device)
    )


def fresh(
    surrogate: ScenarioModel, situations: Sequence[Foresight], names: Sequence[str], count: int, seed: int
) -> Scenarios:
    """Scenarios of an alteration that nothing has seen before, for B situations.

    Args:
        surrogate: A fitted posterior.
        situations: The B situations.
        names: What is altered; may be empty.
        count: How many scenarios.
        seed: Decides them; it gives others than those of `SuccessProbabilities` with any seed from 0 on.
    """
    return scenarios_of(
        surrogate,
        surrogate.sampled(count, STAGES * seed + STAGES - 1),
        surrogate.task.given(situations),
        names,
    )
