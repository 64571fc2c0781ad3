"""A transition model with weights of your own, and one that a Trainer of your own trains."""

from functools import partial

import torch
from lightning.pytorch import Trainer

import rehearsal_torch as rt
from rehearsal_torch.data.episode import transitions
from rehearsal_torch.mechanisms.location_scale import LocationScale
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.objectives.step_reward import LinearReward
from rehearsal_torch.search.sequences.branch_and_bound import BranchAndBound
from rehearsal_torch.surrogates.transition import TransitionModel
from rehearsal_torch.training.lightning_module import lightning_parts

torch.manual_seed(0)
H = 16  # hidden units


def weights(spread):
    """Weights of one network, drawn here."""
    shapes = {"inner": (H, 3), "action": (H, 2), "bias": (H,), "outer": (2, H), "shift": (2,)}
    return {name: spread * torch.randn(shape, dtype=torch.float64) for name, shape in shapes.items()}


mechanism = LocationScale.from_tensors(
    weights(0.2), weights(0.1), cholesky=0.1 * torch.eye(2, dtype=torch.float64)
)
model = TransitionModel.from_tensors(
    varying=["pressure", "lactate"],
    static=["age"],
    contextual=["ventilated"],
    mechanism=mechanism,
    ranges={"pressure": (30, 140), "lactate": (0.5, 12), "age": (18, 95), "ventilated": (0, 1)},
    levels={"vasopressor": [0, 1, 2]},  # its codes are its levels
)
print(mechanism.networks.lipschitz())  # certified for these weights: of h, and of phi before its softplus

columns = ("pressure", "lactate", "age", "ventilated", "vasopressor")
rows = [
    [62, 4.0, 71, 0, 0],
    [58, 4.4, 71, 0, 1],
    [61, 5.0, 71, 1, 2],
    [66, 4.1, 71, 1, 2],
    [70, 3.2, 71, 1, 1],
]
episode = rt.Episode("patient 1", columns, torch.tensor(rows, dtype=torch.float64))
objective = CounterfactualReturn(model, rt.EpisodeCase(episode), LinearReward({"lactate": -1.0}), changes=2)
decision = BranchAndBound()(objective)
print(decision.alteration, decision.value, objective.outcome())

# The same kind of model, trained by a Trainer of your own.
roles = {"varying": ["pressure", "lactate"], "static": ["age"], "contextual": ["ventilated"]}
own = TransitionModel(**roles, doses=["vasopressor"], mechanism=partial(LocationScale, hidden=16), levels=3)
for module, data in lightning_parts(own, transitions([episode])):
    Trainer(max_epochs=2, gradient_clip_val=1.0, logger=False, enable_checkpointing=False).fit(module, data)
own.require_fitted()
