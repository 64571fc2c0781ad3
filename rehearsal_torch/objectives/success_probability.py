"""The probability of success under a posterior of rehearsal models, and the information gained by acting.

An alteration z of one set of variables has two sides: the probability of success, E_{G, theta} P(Y in S | G,
theta, x, z), estimated by the share of desired scenarios, and the information about the model in the
resulting observation. Policies differ in how they use them: Qin et al. maximise the information where the
probability is at least tau; a policy that only aims at success now maximises the probability.

There are three samples, each with its own models and noise: one for the search, one that validates its
results, and one for the reported probability of success. A fourth, smaller one is for the information.

Source: Qin et al. (2023), Eq. 5-6 and Sec. 4.2-4.3; the third sample is ours.
"""

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor

from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.objectives.information import Entropy, Information
from rehearsal_torch.objectives.objective import Appraisal, chance
from rehearsal_torch.objectives.scenario_success import CountObjective, Scenarios, rowwise
from rehearsal_torch.seeding import generator
from rehearsal_torch.surrogates.structural.graph_posterior import GraphBelief
from rehearsal_torch.surrogates.structural.sampled_models import SampledModels, ScenarioModel

TRAINING, VALIDATION, TEST, INFORMATION, STAGES = 0, 1, 2, 3, 8
# Stages of samples that are drawn for a certificate, after the decision.
MODELS, FRESH = STAGES - 2, STAGES - 1


class SuccessProbability(CountObjective):
    """The probability of success for one set of altered variables in B cases.

    Args:
        names: The k altered variables.
        search_scenarios: Scenarios for the search.
        validation_scenarios: Other scenarios, which validate its results.
        test_scenarios: Further scenarios, for the reported probability.
        before: The probability of success without an alteration, (B,).
        information: The information that a round would provide.
        belief: The test scenarios by graph, where there are several; None for one graph.
    """

    takes = (ScenarioModel,)

    # A search may look for information among what is probable enough.
    enumerable = False

    def __init__(
        self,
        cases: Sequence[RehearsalCase],
        names: Sequence[str],
        search_scenarios: Scenarios,
        validation_scenarios: Scenarios,
        test_scenarios: Scenarios,
        before: Tensor,
        information: Information,
        belief: GraphBelief | None = None,
    ) -> None:
        super().__init__(cases, names, search_scenarios, validation_scenarios)
        self.test_scenarios, self.before, self.information = self.counted(test_scenarios), before, information
        self.belief = belief

    @classmethod
    def for_sets(
        cls,
        surrogate: ScenarioModel,
        cases: Sequence[RehearsalCase],
        search_scenarios: int = 10000,
        validation_scenarios: int = 10000,
        test_scenarios: int = 1000,
        information_models: int = 300,
        entropy: Entropy = "predictive",
        seed: int = 0,
    ) -> list[Self]:
        """The probability of success for each candidate set of a task.

        Args:
            validation_scenarios: Number of other scenarios, which validate its results.
            test_scenarios: Number of further scenarios, for the reported probability.
            information_models: Number of models from which the information is estimated.
            entropy: The entropy estimate; see `Information`.
            seed: Seed of all of them.

        Raises:
            ValueError: if a number is not positive.
        """
        if min(search_scenarios, validation_scenarios, test_scenarios, information_models) < 1:
            raise ValueError(
                "expected positive numbers of scenarios for search, validation and test, and of models; got "
                f"{search_scenarios}, {validation_scenarios}, {test_scenarios} and {information_models}"
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
        unaltered = scenarios_of(surrogate, models[TEST], contexts, ()).desired(
            contexts.new_empty(len(contexts), 0)
        )
        before, weights = unaltered.double().mean(0), surrogate.graph_weights()
        belief = GraphBelief(models[TEST].graphs, weights, unaltered) if len(weights) > 1 else None
        found = []
        for names in surrogate.task.candidates:
            search, other, test = (
                scenarios_of(surrogate, each, contexts, names) for each in models[:INFORMATION]
            )
            information = Information(surrogate, models[INFORMATION], contexts, names, entropy)
            found.append(cls(cases, names, mixed(search, seed), other, test, before, information, belief))
        return found

    def share_of(self, index: int, actions: Tensor, *, validating: bool = True) -> Tensor:
        """The share of desired scenarios in one case, (m, k) -> (m,), in the validation sample or in that of
        the search.
        """
        part = (self.validation_scenarios if validating else self.search_scenarios).one(index)
        return part.share((actions - self.origin[index].to(actions)).unsqueeze(-2)).squeeze(-1)

    def appraise(self, actions: Tensor) -> list[Appraisal]:
        """The probability of success, and that without an alteration. Trace: ``graphs``, under which of
        several graphs the alteration is better than none (`surrogates.structural.graph_posterior`).
        """
        desired = self.test_scenarios.desired(actions - self.origin.to(actions))
        by_graph: list[dict[str, Any]] = [{} for _ in self.cases]
        if self.belief is not None:
            by_graph = [{"graphs": each} for each in self.belief.judged(desired)]
        rows = zip(desired.double().mean(0).tolist(), self.before.tolist(), by_graph, strict=True)
        return [
            Appraisal(chance(estimated), chance(baseline), trace=trace, draws=len(self.test_scenarios.gains))
            for estimated, baseline, trace in rows
        ]


def scenarios_of(
    surrogate: ScenarioModel, models: SampledModels, contexts: Tensor, names: Sequence[str]
) -> Scenarios:
    """Scenarios of sampled models, for contexts (B, |X|)."""
    outcomes = models.scenarios(contexts, names).only(surrogate.task.outcomes)
    return rowwise(outcomes.offset.movedim(0, 1), outcomes.gain, surrogate.task.region)


def mixed(scenarios: Scenarios, seed: int) -> Scenarios:
    """The scenarios in random order: models come sorted by graph, and a program takes the first of them."""
    return scenarios.some(
        torch.randperm(len(scenarios.gains), generator=generator(seed)).to(scenarios.gains.device)
    )


def fresh(
    surrogate: ScenarioModel, cases: Sequence[RehearsalCase], names: Sequence[str], count: int, seed: int
) -> Scenarios:
    """Fresh scenarios of an alteration, of no variables maybe, for B cases: used neither by a search nor for
    validation, they differ from those of `SuccessProbability` with any non-negative seed.
    """
    return scenarios_of(
        surrogate,
        surrogate.sampled(count, STAGES * seed + FRESH),
        surrogate.task.given(cases),
        names,
    )
