"""Old names of configuration keys and arguments, and their current ones.

Old keys that are typed are answered with the current one; those in run folders and checkpoints are read.

Source: ours.
"""

from collections.abc import Mapping
from typing import Any

from rehearsal_torch.files.moved import current

RENAMED_KEYS = {
    "dataset.fed_on": "dataset.propagate_noise",
    "dataset.least": "dataset.min_length",
    "dataset.longest": "dataset.max_length",
    "objective.averaged": "objective.noise_draws",
    "objective.choose": "objective.validation_scenarios",
    "objective.few": "objective.low_support",
    "objective.fresh": "objective.evaluation_draws",
    "objective.judge": "objective.test_scenarios",
    "objective.judged": "objective.evaluation_draws",
    "objective.least": "objective.min_support",
    "objective.plausible": "objective.epistemic_draws",
    "objective.seek": "objective.search_scenarios",
    "objective.teach": "objective.information_models",
    "search.decrease": "search.sufficient_decrease",
    "search.fewest": "search.min_starts",
    "search.glance": "search.screening_draws",
    "search.judged": "search.evaluation_draws",
    "search.law": "search.sampling",
    "search.looked": "search.screened",
    "search.otherwise": "search.fallback",
    "search.raw": "search.screened",
    "search.seconds": "search.budget_s",
    "search.shrink": "search.step_reduction",
    "search.time_limit_s": "search.budget_s",
    "search.together": "search.batch_size",
    "surrogate.borrowed": "surrogate.prior_weight",
    "surrogate.estimator.chosen_by": "surrogate.estimator.width_rows",
    "surrogate.estimator.directed_by": "surrogate.estimator.direction_rows",
}
"""Renamed configuration keys of this package's classes; keys of user-defined classes stay as they are."""

_SAMPLE = {f"dataset.{name}": f"dataset.size.{name}" for name in ("rows", "contexts")}
_ROUNDS = {f"dataset.{name}": f"dataset.size.{name}" for name in ("rounds", "initial")}
_DROPWAVE = {f"dataset.{name}": f"dataset.noise.{name}" for name in ("sigma", "modes", "reading")}
_NOISE = _DROPWAVE | {f"dataset.{name}": f"dataset.noise.{name}" for name in ("means", "factors")}
_READING = {"dataset.noise": "dataset.reading"}
RENAMED_BY_CLASS = {
    "problems.causal.ackley.Ackley": _NOISE | _ROUNDS,
    "problems.causal.alpine2.Alpine2": _NOISE | _ROUNDS,
    "problems.causal.chemostat.Chemostat": _ROUNDS,
    "problems.causal.dropwave.Dropwave": _DROPWAVE | _ROUNDS,
    "problems.causal.epidemic.Epidemic": _NOISE | _ROUNDS,
    "problems.causal.pooled_testing.PooledTesting": _NOISE | _ROUNDS,
    "problems.causal.rosenbrock.Rosenbrock": _NOISE | _ROUNDS,
    "problems.nhanes.dataset.Nhanes": _SAMPLE,
    "problems.rehearsal.bermuda.Bermuda": _SAMPLE,
    "problems.rehearsal.changing_world.FollowedStore": _SAMPLE,
    "problems.rehearsal.changing_world.TwoStores": _SAMPLE,
    "problems.rehearsal.lin_syn1.LinSyn1": _SAMPLE | _READING,
    "problems.rehearsal.loan.Loan": _SAMPLE | _READING,
    "problems.rehearsal.market.Manage": _SAMPLE,
    "problems.rehearsal.market.Market": _SAMPLE,
    "problems.rehearsal.non_syn1.NonSyn1": _SAMPLE | _READING,
    "problems.rehearsal.non_syn2.NonSyn2": _SAMPLE | _READING,
    "problems.rehearsal.ride_hailing.RideHailing": _SAMPLE,
}
"""Keys that are renamed in the configuration of one class: class, as a path in the current modules, to old
and new keys.
"""

PARTS = {
    "dataset.noise.sigma": "problems.causal.noise.ModalNoise",
    "dataset.size.rounds": "problems.world_size.Rounds",
    "dataset.size.rows": "problems.world_size.SampleSize",
}
"""Settings that are objects of their own today: a key of each, which every configuration of it has, to its
class.
"""

RENAMED_BY_ROOM = {("search.glance", "search.trials"): "search.screening_steps"}
"""Keys with a different new name in the classes of one room: (key, room) to key."""

RENAMED_CHOICES = {"search=refrain": "search=no_action", "search=tanh_descent": "search=adam_in_box"}
"""Renamed files of `conf`, as overrides of the command line."""

RENAMED_ARGUMENTS = {
    "surrogates.kernel.spectral_ensemble.SpectralEnsemble": {
        "chosen_by": "width_rows",
        "directed_by": "direction_rows",
    },
    "surrogates.kernel.spectral_ridge.SpectralRidge": {
        "chosen_by": "width_rows",
        "directed_by": "direction_rows",
    },
    "surrogates.structural.graph_posterior.StructuralPosterior": {"borrowed": "prior_weight"},
}
"""Renamed arguments of a class in the configuration of a checkpoint, by its path in the current modules."""


def current_key(key: str, config: Mapping[str, Any]) -> str:
    """The current key for a dotted key of this package's classes; others unchanged.

    Args:
        key: As written, such as `search.time_limit_s`.
        config: The configuration that holds it, which names the class that has the key.
    """
    target, node = None, config
    for name in key.split(".")[:-1]:
        inner = node.get(name)
        if not isinstance(inner, Mapping):
            break
        target, node = inner.get("_target_", target), inner
    package, _, inside = current(str(target)).partition(".")
    if package != __name__.partition(".")[0]:
        return key
    if key in RENAMED_BY_CLASS.get(inside, {}):
        return RENAMED_BY_CLASS[inside][key]
    rooms = (
        new for (old, room), new in RENAMED_BY_ROOM.items() if old == key and inside.startswith(f"{room}.")
    )
    return next(rooms, RENAMED_KEYS.get(key, key))


def current_settings(settings: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a configuration, dotted key to value, with the keys and the class paths of today.

    Values that were arguments of a class, and belong to an object below it today, are moved there, together
    with the object's class.

    Args:
        settings: All settings as written.
        config: The same configuration, as nested mappings.
    """
    found: dict[str, Any] = {}
    for key, value in settings.items():
        new = current_key(key, config)
        if new != key and new in PARTS:
            part, package = new.rpartition(".")[0], __name__.partition(".")[0]
            found[f"{part}._target_"] = f"{package}.{PARTS[new]}"
        target = key.rpartition(".")[2] == "_target_" and isinstance(value, str)
        found[new] = current(value) if target else value
    return found


def current_arguments(node: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping of a class and its arguments, with the arguments' current names."""
    package, _, inside = current(str(node.get("_target_"))).partition(".")
    renamed = RENAMED_ARGUMENTS.get(inside, {}) if package == __name__.partition(".")[0] else {}
    return {key if renamed.get(key) in node else renamed.get(key, key): value for key, value in node.items()}
