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

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.candidates import Candidates
from rehearsal_torch.objectives.information import Entropy, Information
from rehearsal_torch.objectives.objective import Appraisal, chance
from rehearsal_torch.objectives.scenario_success import CountObjective, Scenarios, rowwise
from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.structural.sampled_models import SampledModels, ScenarioModel

TRAINING, VALIDATION, TEST, INFORMATION, STAGES = 0, 1, 2, 3, 8


class SuccessProbability(CountObjective):
    """The probability of success for one set of altered variables in B situations.

    Args:
        cases: The B situations.
        names: The k altered variables.
        search_scenarios: Scenarios that a search sees.
        validation_scenarios: Others, that validate what it found.
        test_scenarios: Others again, that say what is expected of the choice.
        before: The probability of success with nothing altered, (B,).
        information: What a round would teach.
    """

    def __init__(
        self,
        cases: Sequence[RehearsalCase],
        names: Sequence[str],
        search_scenarios: Scenarios,
        validation_scenarios: Scenarios,
        test_scenarios: Scenarios,
        before: Tensor,
        information: Information,
    ) -> None:
        super().__init__(cases, names, search_scenarios, validation_scenarios)
        self.test_scenarios, self.before, self.information = self.counted(test_scenarios), before, information

    def share_of(self, index: int, actions: Tensor, *, validating: bool = True) -> Tensor:
        """The share of desired scenarios in one of the situations, (m, k) -> (m,), by the validating sample
        or by that which a search sees.
        """
        part = (self.validation_scenarios if validating else self.search_scenarios).one(index)
        return part.share((actions - self.origin[index].to(actions)).unsqueeze(-2)).squeeze(-1)

    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """The probability, and the probability with nothing altered."""
        shares = self.test_scenarios.share(actions - self.origin.to(actions)).tolist()
        return [
            Appraisal(chance(estimated), chance(baseline))
            for estimated, baseline in zip(shares, self.before.tolist(), strict=True)
        ]


class SuccessProbabilities(Candidates[SuccessProbability]):
    """The probability of success for every candidate set of a task.

    Args:
        surrogate: A fitted posterior of rehearsal models.
        cases: The B situations.
        search_scenarios: Scenarios that a search sees.
        validation_scenarios: Others, that validate what it found.
        test_scenarios: Others again, that say what is expected of the choice.
        information_models: Models from which the information is estimated.
        entropy: How.
        seed: Decides all of them.

    Raises:
        ValueError: if a number is not positive.
    """

    def __init__(
        self,
        surrogate: ScenarioModel,
        cases: Sequence[RehearsalCase],
        search_scenarios: int = 10000,
        validation_scenarios: int = 10000,
        test_scenarios: int = 1000,
        information_models: int = 300,
        entropy: Entropy = "predictive",
        seed: int = 0,
    ) -> None:
        if min(search_scenarios, validation_scenarios, test_scenarios, information_models) < 1:
            raise ValueError(
                "expected positive numbers of scenarios for search, validation and test, and of models; got "
                f"{search_scenarios}, "
                f"{validation_scenarios}, {test_scenarios} and {information_models}"
            )
        contexts = surrogate.task.given(cases)
        models = [
            surrogate.sampled(count, STAGES * seed + stage)
            for stage, count in (
                (TRAINING, search_scenarios),
                (VALIDATION, validation_scenarios),
                (TEST, test_scenarios),
                (INFORMATION, information_models),
            )
        ]
        before = scenarios_of(surrogate, models[TEST], contexts, ()).share(
            contexts.new_empty(len(contexts), 0)
        )
        found = []
        for names in surrogate.task.candidates:
            seen, other, last = (
                scenarios_of(surrogate, each, contexts, names) for each in models[:INFORMATION]
            )
            information = Information(surrogate, models[INFORMATION], contexts, names, entropy)
            found.append(
                SuccessProbability(cases, names, mixed(seen, seed), other, last, before, information)
            )
        super().__init__(cases, found, surrogate)


def scenarios_of(
    surrogate: ScenarioModel, models: SampledModels, contexts: Tensor, names: Sequence[str]
) -> Scenarios:
    """Which scenarios of some models are desired: contexts (B, |X|)."""
    outcomes = models.scenarios(contexts, names).only(surrogate.task.outcomes)
    return rowwise(outcomes.offset.movedim(0, 1), outcomes.gain, surrogate.task.region)


def mixed(scenarios: Scenarios, seed: int) -> Scenarios:
    """The scenarios in an order drawn at random: models come sorted by graph, and a program takes the first
    of them.
    """
    return scenarios.some(
        torch.randperm(len(scenarios.gains), generator=generator(seed)).to(scenarios.gains.device)
    )


def fresh(
    surrogate: ScenarioModel, cases: Sequence[RehearsalCase], names: Sequence[str], count: int, seed: int
) -> Scenarios:
    """Scenarios of an alteration that nothing has seen before, for B situations.

    Args:
        surrogate: A fitted posterior.
        cases: The B situations.
        names: What is altered; may be empty.
        count: How many scenarios.
        seed: Decides them; it gives others than those of `SuccessProbabilities` with any seed from 0 on.
    """
    return scenarios_of(
        surrogate,
        surrogate.sampled(count, STAGES * seed + STAGES - 1),
        surrogate.task.given(cases),
        names,
    )
