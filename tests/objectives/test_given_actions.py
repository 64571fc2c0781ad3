"""What objectives say of actions that were chosen elsewhere."""

from rehearsal_torch.data.decision import Decision
from rehearsal_torch.objectives.gaussian_success import GaussianSuccess
from rehearsal_torch.objectives.given_actions import appraisals, estimates
from rehearsal_torch.search.alterations.projected_newton import ProjectionNewton
from rehearsal_torch.surrogates.structural.linear_scm import LinearStructural
from rehearsal_torch.training.fit import fit
from tests.toys.linear_truth import managing

SINGLE_OR_BOTH = (("raw_cost",), ("raw_cost", "self_pricing"))


def test_each_action_is_appraised_by_the_objective_of_its_variables():
    world = managing(candidates=SINGLE_OR_BOTH)
    objective = GaussianSuccess.for_cases(fit(LinearStructural(world.task), world.table(300)), world.cases(3))
    decisions = ProjectionNewton().batch_search(objective)
    decisions[1] = Decision(None, 0.0, status="no_action")
    found = appraisals(objective.sets, decisions)
    assert found[1] is None
    points, draws = estimates(objective, decisions)
    assert draws == [None] * 3
    assert bool(points[1].isnan())
    for place in (0, 2):
        decided = decisions[place]
        assert found[place].estimate == decided.estimate
        assert float(points[place]) == decided.estimate.point
    others = [each for each in objective.sets if each.names != decisions[0].alteration.names]
    assert appraisals(others, decisions[:1] * 3) == [None] * 3
