"""Old names of modules, classes, configuration keys and fields of files (before version 0.2.0), and their
current ones.

Checkpoints, run folders and study results of earlier versions still hold the old names; their readers
translate them.

Source: ours.
"""

from collections.abc import Mapping
from typing import Any

MOVED = {
    "certificates.pac_bound": "certificate",
    "datasets.ackley": "problems.causal.ackley",
    "datasets.alpine2": "problems.causal.alpine2",
    "datasets.alteration_code": "adapters.gymnasium",
    "datasets.bermuda": "problems.rehearsal.bermuda",
    "datasets.bermuda_regression": "problems.rehearsal.bermuda",
    "datasets.best_action": "problems.causal.optimum",
    "datasets.boosted_trees": "problems.nhanes.trees",
    "datasets.card": "problems.episodes.stays",
    "datasets.causal_problem": "problems.problem",
    "datasets.causal_world": "problems.causal.world",
    "datasets.changing_world": "problems.rehearsal.changing_world",
    "datasets.chemostat": "problems.causal.chemostat",
    "datasets.chemostat_laws": "problems.causal.chemostat_dynamics",
    "datasets.chemostat_rows": "problems.causal.chemostat_dynamics",
    "datasets.chemostat_start": "problems.causal.chemostat_dynamics",
    "datasets.csv_file": "data.reading",
    "datasets.curved_world": "problems.rehearsal.additive_noise_world",
    "datasets.dropwave": "problems.causal.dropwave",
    "datasets.epidemic": "problems.causal.epidemic",
    "datasets.even_draws": "problems.causal.noise",
    "datasets.exogenous": "problems.rehearsal.additive_noise_world",
    "datasets.experiment_table": "problems.causal.own_experiments",
    "datasets.gauss_rule": "problems.causal.noise",
    "datasets.grid_ascent": "problems.causal.optimum",
    "datasets.lin_syn1": "problems.rehearsal.lin_syn1",
    "datasets.linear_law": "problems.rehearsal.linear_world",
    "datasets.linear_market": "problems.rehearsal.market",
    "datasets.linear_world": "problems.rehearsal.linear_world",
    "datasets.loan": "problems.rehearsal.loan",
    "datasets.manage": "problems.rehearsal.market",
    "datasets.market": "problems.rehearsal.market",
    "datasets.mimic": "problems.episodes.mimic",
    "datasets.mixture_noise": "problems.causal.noise",
    "datasets.nhanes": "problems.nhanes.dataset",
    "datasets.nhanes_download": "problems.nhanes.download",
    "datasets.nhanes_fit": "problems.nhanes.fitting",
    "datasets.nhanes_generator": "problems.nhanes.generator",
    "datasets.nhanes_modules": "problems.nhanes.modules",
    "datasets.nhanes_validation": "problems.nhanes.fitting",
    "datasets.nhanes_variables": "problems.nhanes.modules",
    "datasets.noise_modes": "problems.causal.noise",
    "datasets.noise_reading": "problems.rehearsal.additive_noise_world",
    "datasets.non_syn1": "problems.rehearsal.non_syn1",
    "datasets.non_syn2": "problems.rehearsal.non_syn2",
    "datasets.normal_region": "problems.rehearsal.gaussian_region",
    "datasets.number_columns": "data.reading",
    "datasets.played_rounds": "adapters.gymnasium",
    "datasets.pooled_households": "problems.causal.pooled_protocol",
    "datasets.pooled_protocol": "problems.causal.pooled_protocol",
    "datasets.pooled_testing": "problems.causal.pooled_testing",
    "datasets.problem": "problems.problem",
    "datasets.quartic_moments": "problems.causal.alpine2",
    "datasets.recovery_panel": "evaluation.noise_recovery",
    "datasets.rehearsal_environment": "adapters.gymnasium",
    "datasets.rehearsal_problem": "problems.problem",
    "datasets.rehearsal_table": "problems.rehearsal.own_table",
    "datasets.rehearsal_world": "problems.rehearsal.world",
    "datasets.residual_law": "problems.nhanes.residuals",
    "datasets.ride_hailing": "problems.rehearsal.ride_hailing",
    "datasets.rosenbrock": "problems.causal.rosenbrock",
    "datasets.sepsis_simulated": "problems.episodes.cohort",
    "datasets.sepsis_simulator": "problems.episodes.simulator",
    "datasets.sepsis_truth": "evaluation.sepsis_truth",
    "datasets.sofa": "problems.episodes.simulator",
    "datasets.splits": "problems.episodes.cohort",
    "datasets.start_design": "problems.causal.start_design",
    "datasets.stays": "problems.episodes.stays",
    "datasets.truth_panel": "evaluation.truth_panel",
    "datasets.truth_parts": "evaluation.sepsis_truth",
    "datasets.two_stores": "problems.rehearsal.changing_world",
    "datasets.world_function": "adapters.botorch",
    "datasets.written_task": "data.task_file",
    "mechanisms.bayesian_regression": "estimators.bayesian_regression",
    "mechanisms.conjugate_regression": "estimators.conjugate_regression",
    "mechanisms.course": "mechanisms.trajectory",
    "mechanisms.curvature": "mechanisms.trajectory",
    "mechanisms.curved_equation": "mechanisms.trajectory",
    "mechanisms.drifting_regression": "estimators.drifting_regression",
    "mechanisms.equation": "mechanisms.trajectory",
    "mechanisms.evidence_ridge": "estimators.evidence_ridge",
    "mechanisms.gaussian_mixture": "estimators.mixture",
    "mechanisms.gaussian_process": "estimators.kernel",
    "mechanisms.gaussian_process_map": "estimators.gp_posterior",
    "mechanisms.gaussian_process_posterior": "estimators.gp_posterior",
    "mechanisms.gaussian_processes": "estimators.gaussian_process",
    "mechanisms.heteroskedastic": "estimators.heteroskedastic",
    "mechanisms.hilbert_schmidt": "estimators.hsic",
    "mechanisms.location_scale_course": "mechanisms.location_scale_trajectory",
    "mechanisms.location_scale_curvature": "mechanisms.location_scale_trajectory",
    "mechanisms.mixture_regression": "estimators.mixture_regression",
    "mechanisms.stationary_kernel": "estimators.kernel",
    "networks.lipschitz": "mechanisms.lipschitz_network",
    "objectives.alternatives": "objectives.objective",
    "objectives.causal_objective": "objectives.expected_reward",
    "objectives.epistemic_draws": "objectives.expected_reward",
    "objectives.nearest_neighbour_entropy": "objectives.information",
    "objectives.polygon_probability": "objectives.region_probability.polygon",
    "objectives.polytope_probability": "objectives.region_probability.polytope",
    "objectives.posterior_mean": "objectives.expected_reward",
    "objectives.rectangle_probability": "objectives.region_probability.rectangle",
    "objectives.region_centre": "objectives.centre_distance",
    "objectives.reward": "objectives.counterfactual_return",
    "objectives.reward_spread": "objectives.expected_reward",
    "objectives.scenario_count": "objectives.scenario_success",
    "objectives.scenarios": "objectives.scenario_success",
    "objectives.success_law": "objectives.region_probability.rectangle",
    "search.acquisition": "search.trials.acquisition",
    "search.alteration_budget": "search.alterations.joint_candidates",
    "search.anchors": "search.sequences.lipschitz_bound",
    "search.astar": "search.sequences.astar",
    "search.branch_and_bound": "search.sequences.branch_and_bound",
    "search.change_events": "search.sequences.change_events",
    "search.cheapest_alteration": "search.alterations.chance_projection",
    "search.counterfactual_process": "search.sequences.decision_process",
    "search.covered_intervals": "search.alterations.interval_sweep",
    "search.event_sets": "search.sequences.event_sets",
    "search.event_tree": "search.sequences.branch_tree",
    "search.exhaustive": "search.sequences.exhaustive",
    "search.gain_bound": "search.sequences.gain_bound",
    "search.greedy_changes": "search.sequences.baselines",
    "search.informative": "search.alterations.informative",
    "search.interval_centring": "search.alterations.projected_newton",
    "search.interval_sweep": "search.alterations.interval_sweep",
    "search.joint_candidates": "search.alterations.joint_candidates",
    "search.lipschitz_bound": "search.sequences.lipschitz_bound",
    "search.many": "search.search",
    "search.mixed_integer": "search.alterations.mixed_integer",
    "search.multistart": "search.trials.box_ascent",
    "search.optimistic_networks": "search.trials.optimistic_networks",
    "search.pool_acquisition": "search.alterations.pool_bayes_opt",
    "search.projected_ascent": "search.alterations.projected_ascent",
    "search.projection_newton": "search.alterations.projected_newton",
    "search.push_networks": "search.trials.optimistic_networks",
    "search.qualifying": "search.alterations.qualifying",
    "search.random_changes": "search.sequences.baselines",
    "search.recommendation": "search.trials.acquisition",
    "search.refrain": "search.search",
    "search.sequence": "search.sequences.decision_process",
    "search.single_changes": "search.sequences.baselines",
    "search.spread_actions": "search.trials.space_filling",
    "search.stream": "seeding",
    "search.tanh_descent": "search.alterations.adam_in_box",
    "search.top_k": "search.sequences.baselines",
    "surrogates.alteration_value": "surrogates.kernel.nested_ridge",
    "surrogates.botorch_view": "surrogates.network.model",
    "surrogates.causal_model": "surrogates.network.causal_model",
    "surrogates.conjugate_gradients": "surrogates.kernel.iterative_ridge",
    "surrogates.desirability": "surrogates.kernel.nested_ridge",
    "surrogates.drifting_linear": "surrogates.structural.drifting_scm",
    "surrogates.evidence_metric": "surrogates.kernel.metric",
    "surrogates.exogenous_law": "mechanisms.gp_mechanism",
    "surrogates.exogenous_model": "surrogates.network.exogenous_model",
    "surrogates.flow_structural": "surrogates.structural.flow_scm",
    "surrogates.fourier_ridge": "surrogates.kernel.fourier_ridge",
    "surrogates.gaussian_bumps": "surrogates.kernel.product_kernel",
    "surrogates.hypotheses": "surrogates.structural.sampled_models",
    "surrogates.iterative_ridge": "surrogates.kernel.iterative_ridge",
    "surrogates.kernel_widths": "surrogates.kernel.product_kernel",
    "surrogates.landmark_regression": "surrogates.kernel.low_rank_ridge",
    "surrogates.linear_law": "surrogates.structural.linear_model",
    "surrogates.linear_structural": "surrogates.structural.linear_scm",
    "surrogates.linear_surrogate": "surrogates.structural.linear_scm",
    "surrogates.low_rank_ridge": "surrogates.kernel.low_rank_ridge",
    "surrogates.metric_ridge": "surrogates.kernel.metric",
    "surrogates.nested_ridge": "surrogates.kernel.nested_ridge",
    "surrogates.network_questions": "surrogates.network.causal_model",
    "surrogates.node_rows": "surrogates.network.training_data",
    "surrogates.pivoted_cholesky": "surrogates.kernel.low_rank_ridge",
    "surrogates.posterior_models": "surrogates.structural.graph_posterior",
    "surrogates.predictive_density": "objectives.information",
    "surrogates.product_kernel": "surrogates.kernel.product_kernel",
    "surrogates.product_ridge": "surrogates.kernel.product_ridge",
    "surrogates.push_forward": "surrogates.structural.flow_scm",
    "surrogates.relevant_directions": "surrogates.kernel.metric",
    "surrogates.scenario_model": "surrogates.structural.sampled_models",
    "surrogates.spectral_ensemble": "surrogates.kernel.spectral_ensemble",
    "surrogates.spectral_ridge": "surrogates.kernel.spectral_ridge",
    "surrogates.steepness": "surrogates.transition",
    "surrogates.structural_posterior": "surrogates.structural.graph_posterior",
    "training.action_trees": "studies.online.action_trees",
    "training.actor_critic": "studies.online.actor_critic",
    "training.agent": "studies.online.agent",
    "training.batches": "training.module",
    "training.folds": "training.cross_validation",
    "training.loggers": "training.callbacks",
    "training.watching": "training.callbacks",
}

RENAMED_CLASSES = {
    "objectives.centre_distance.CentreDistances": "objectives.centre_distance.CentreDistance",
    "objectives.chance_cost.ChanceCosts": "objectives.chance_cost.ChanceCost",
    "objectives.gaussian_success.SuccessObjective": "objectives.gaussian_success.GaussianSuccess",
    "objectives.kernel_value.AlteredValue": "objectives.kernel_value.KernelValue",
    "objectives.scenario_success.ScenarioCounts": "objectives.scenario_success.ScenarioCount",
    "objectives.success_probability.SuccessProbabilities": (
        "objectives.success_probability.SuccessProbability"
    ),
    "search.alterations.adam_in_box.TanhDescent": "search.alterations.adam_in_box.AdamInBox",
    "search.search.Refrain": "search.search.NoAction",
    "search.trials.space_filling.SpreadActions": "search.trials.space_filling.SpaceFilling",
}
"""Renamed classes, as paths in the current modules."""

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

RENAMED_FIELDS = {
    "score.brier_untouched": "score.brier_no_action",
    "score.desired_untouched": "score.desired_no_action",
    "score.foretold_untouched": "score.predicted_no_action",
    "trace.believed": "trace.predicted_reward",
    "trace.pushes": "trace.perturbations",
}
"""Renamed fields of a line of decisions.jsonl, for `current_fields`."""

RENAMED_CARD = {
    "least_losses": "min_losses",
    "data.laws": "data.distributions",
    "data.noise.*.deviations": "data.noise.*.stds",
    "data.horizons.least": "data.horizons.min",
    "data.horizons.largest": "data.horizons.max",
    "data.features.*.least": "data.features.*.min",
    "data.features.*.largest": "data.features.*.max",
}
"""Renamed fields of the card of a checkpoint, for `current_fields`."""

RENAMED_STATE = {
    "estimators.conjugate_regression.ConjugateRegression": {
        "middle": "posterior_mean",
        "shares": "mixture_weights",
    },
    "estimators.drifting_regression.DriftingRegression": {
        "first": "initial_rows",
        "pace": "rates",
        "reach": "radii",
        "seen": "processed",
        "trace": "fingerprint",
        "votes": "weights",
    },
    "estimators.evidence_ridge.EvidenceRidge": {"middle": "posterior_mean", "trace": "processed_rows"},
    "estimators.mixture_regression.MixtureRegression": {"shift": "noise_mean", "stretch": "noise_std"},
    "surrogates.kernel.metric.MetricRidge": {"shown": "projected"},
    "surrogates.kernel.nested_ridge.NestedRidge": {"untouched": "no_action"},
    "surrogates.network.exogenous_model.ExogenousModel": {"tried": "visited_actions"},
}
"""Renamed tensors and parts in the state of a class, by its path in the current modules."""

RENAMED_CELLS = {
    ("estimator", "observed course"): "observed trajectory",
    ("quantity", "deviation"): "std",
}
"""Renamed texts in tables: (column, text) to text."""


def current(target: str) -> str:
    """The current dotted path for a dotted path of this package; others unchanged.

    Args:
        target: A module and a name, such as `rehearsal_torch.search.astar.AStar`.
    """
    package, _, inside = target.partition(".")
    if package != __name__.partition(".")[0]:
        return target
    module, _, name = inside.rpartition(".")
    here = f"{MOVED.get(module, module)}.{name}"
    return f"{package}.{RENAMED_CLASSES.get(here, here)}"


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


def current_fields(content: Mapping[str, Any], table: Mapping[str, str]) -> dict[str, Any]:
    """Plain data with the current names of renamed fields, in the same order; a field that the data holds
    under both names keeps both.

    Args:
        content: As read from a file.
        table: Old to new names, as dotted paths that differ in their last part; `*` stands for any field.
    """
    tails: dict[str, dict[str, str]] = {}
    names: dict[str, str] = {}
    for old, new in table.items():
        head, dot, rest = old.partition(".")
        if dot:
            tails.setdefault(head, {})[rest] = new.partition(".")[2]
        else:
            names[old] = new
    found: dict[str, Any] = {}
    for key, value in content.items():
        new = names.get(key, key)
        inner = {**tails.get("*", {}), **tails.get(key, {})}
        name = key if new in content else new
        found[name] = current_fields(value, inner) if inner and isinstance(value, Mapping) else value
    return found


def current_arguments(node: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping of a class and its arguments, with the arguments' current names."""
    package, _, inside = current(str(node.get("_target_"))).partition(".")
    renamed = RENAMED_ARGUMENTS.get(inside, {}) if package == __name__.partition(".")[0] else {}
    return {key if renamed.get(key) in node else renamed.get(key, key): value for key, value in node.items()}


def renamed_state(kind: type) -> dict[str, str]:
    """Old to new names in the state of a class, its own and those of the classes that it inherits from."""
    found: dict[str, str] = {}
    for each in kind.__mro__:
        package, _, module = each.__module__.partition(".")
        if package == __name__.partition(".")[0]:
            found = RENAMED_STATE.get(f"{module}.{each.__qualname__}", {}) | found
    return found


def current_cell(column: str, text: str) -> str:
    """The current text for a cell of a table; others unchanged."""
    return RENAMED_CELLS.get((column, text), text)
