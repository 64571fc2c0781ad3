"""Checkpoints: configuration, weights and card mutated, loaded for a task, and decided with where they still
load."""

import hashlib
import shutil

import pytest
import safetensors.torch
import torch
import yaml
from hydra.utils import instantiate

from rehearsal_torch.checkpoint import card, load, save
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.finite import in_numbers
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.training.fit import fit
from tests.fuzz.commanded import LIMITS, PROCESSES, deciding, typed_in
from tests.fuzz.decisions import CONFOUNDED, REHEARSALS, TRIALS, bound, experiments, rows_of, search
from tests.fuzz.mutations import changed, copied, damaged, source, text_of
from tests.fuzz.verdicts import sound
from tests.toys.episodes import transition_episode
from tests.toys.rehearsal_methods import configuration, decided

REHEARSED = {
    "linear_structural": ("gaussian_success", "projection_newton"),
    "nested_ridge": ("kernel_value", "projected_ascent"),
    "structural_posterior": ("success_probability", "informative"),
    "linear_scenarios": ("scenario_count", "interval_sweep"),
}
KINDS = [*REHEARSED, "exogenous", "transition", "linear_structural", "nested_ridge", "transition"]
TASK = {**CONFOUNDED, "candidates": [["a"]]}


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """A checkpoint of each kind, and an episode for those that replay episodes."""
    made = {}

    def of(kind):
        if kind not in made:
            folder = tmp_path_factory.mktemp(kind) / "checkpoint"
            if kind == "transition":
                objective = transition_episode(0, 4, 2, levels=3)
                surrogate = objective.surrogate
                config = {
                    "_target_": "rehearsal_torch.surrogates.transition.TransitionModel",
                    "varying": ["x0", "x1"], "static": ["age"], "contextual": ["vent"], "doses": ["drug0"],
                    "levels": 3,
                    "mechanism": {"_target_": "rehearsal_torch.mechanisms.location_scale.LocationScale",
                    "_partial_": True, "hidden": 8},
                }  # fmt: skip
                made[kind] = (save(surrogate, config, folder), objective)
            else:
                task = RehearsalTask.of(TASK).to_plain() if kind in REHEARSED else TRIALS[0]
                config = {**configuration("surrogate", kind), "task": copied(task)}
                if kind == "exogenous":
                    config |= {"phi": "homoskedastic", "components": 1, "kernel": "rbf"}
                torch.manual_seed(0)
                surrogate = fit(
                    instantiate(config, _convert_="all"),
                    REHEARSALS[0][1] if kind in REHEARSED else experiments(),
                )
                made[kind] = (save(surrogate, config, folder), None)
        return made[kind]

    return of


def weights_changed(rng, content):
    """Tensors that are changed and still written in their format."""
    tensors = safetensors.torch.load(content)
    for _ in range(rng.randint(1, 2)):
        name = rng.choice(sorted(tensors))
        tensor, other = tensors[name], rng.choice(sorted(tensors))
        change = rng.choice([0, 1, 2, 2, 3, 3, 3, 3, 4, 5, 6, 7, 8])
        if change == 0:
            tensors[name] = tensor.to(
                rng.choice(
                    [torch.float16, torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16]
                )
            )
        elif change == 1:
            tensors[name] = rng.choice(
                [
                    tensor.flatten(),
                    tensor.unsqueeze(0),
                    tensor[..., :-1] if tensor.ndim else tensor[None],
                    torch.cat([tensor, tensor], -1) if tensor.ndim else tensor,
                ]
            ).contiguous()
        elif change == 2 and tensor.is_floating_point() and tensor.numel():
            tensor.view(-1)[rng.randrange(tensor.numel())] = rng.choice(
                [float("nan"), float("inf"), 1e30, 1e-30, 0.0, -1.0]
            )
        elif change == 3 and tensor.numel():
            tensors[name] = (
                tensor.to(torch.float64) * rng.choice([0.0, -1.0, 1e6, 1e-9, 1e300, 3.0, 1.1, 0.9, 1.01, 0.5])
            ).to(tensor.dtype)
        elif change == 4:
            tensors[name], tensors[other] = tensors[other].clone(), tensor.clone()
        elif change == 5:
            del tensors[name]
        elif change == 6:
            tensors[rng.choice([f"{name}x", "more", "task", "_extra_state", ""])] = tensor.clone()
        elif change == 7 and tensor.ndim:
            tensors[name] = tensor.flip(rng.randrange(tensor.ndim)).contiguous()
        elif change == 8:
            tensors[name] = torch.full_like(tensor, rng.choice([0, 1, 2, 100]))
        if not tensors:
            break
    return safetensors.torch.save({key: value.contiguous().clone() for key, value in tensors.items()})


def spoilt(rng, folder):
    """Damages a checkpoint; the card's SHA-256 mostly goes with it, as somebody who tampers would have it."""
    told = []
    for _ in range(rng.choice([1, 1, 2])):
        name = rng.choice(
            [
                "config.yaml",
                "config.yaml",
                "weights.safetensors",
                "weights.safetensors",
                "weights.safetensors",
                "card.yaml",
            ]
        )
        path = folder / name
        if not path.is_file():
            continue
        if rng.random() < 0.04:
            path.unlink()
        elif name == "weights.safetensors":
            content = path.read_bytes()
            try:
                path.write_bytes(
                    weights_changed(rng, content) if rng.random() < 0.75 else damaged(rng, content)
                )
            except safetensors.SafetensorError:
                path.write_bytes(damaged(rng, content))
        else:
            plain = (
                yaml.safe_load(path.read_text(encoding="utf-8", errors="replace"))
                if rng.random() < 0.75 and not told
                else None
            )
            content = (
                yaml.safe_dump(changed(rng, plain), sort_keys=False).encode("utf-8", "replace")
                if isinstance(plain, dict)
                else damaged(rng, path.read_bytes())
            )
            path.write_bytes(content)
        told.append(f"{name}: {path.read_bytes()[:1500] if path.is_file() else 'gone'}")
    weights, said = folder / "weights.safetensors", folder / "card.yaml"
    if weights.is_file() and said.is_file() and rng.random() < 0.9 and "card.yaml" not in "".join(told)[:9]:
        said.write_text(yaml.safe_dump({"weights_sha256": hashlib.sha256(weights.read_bytes()).hexdigest()}))
    return told


def used(kind, surrogate, episode):
    """Decides with what was loaded."""
    if kind in REHEARSED:
        one_case = RehearsalCase(
            "1", {"x": torch.tensor(0.3, dtype=torch.float64)}, Box.of({"a": (-1.5, 1.5)}).bounds()
        )
        (decision,) = decided(surrogate, REHEARSED[kind], [one_case])
        sound(decision, one_case)
    elif kind == "transition":
        objective = CounterfactualReturn(surrogate, episode.case, episode.reward, 2)
        decision = GreedyChanges()(objective)
        sound(decision)
        objective.trajectory_record(decision)
    else:
        one_case = RehearsalCase("1", {}, {"a": (0.0, 1.0), "b": (0.0, 2.0)})
        decision = search(bound(surrogate, one_case))
        sound(decision, one_case)


def test_checkpoints(number, judged, fitted, tmp_path):
    rng = source("checkpoints", number)
    kind = KINDS[number % len(KINDS)]
    made, episode = fitted(kind)
    folder = shutil.copytree(made, tmp_path / "checkpoint")
    told = spoilt(rng, folder)
    task = (
        None
        if rng.random() < 0.3
        else list(episode.case.episode.names)
        if kind == "transition"
        else TASK
        if kind in REHEARSED
        else TRIALS[0]
    )

    def work():
        surrogate = load(folder, task=task)
        card(folder)
        if task is not None:
            # As the loop that every method runs through does.
            with in_numbers("what was learnt"):
                used(kind, surrogate, episode)

    judged(work, f"{kind}\n" + "\n".join(told))


def test_checkpoints_command(number, judged, fitted, tmp_path):
    rng = source("checkpoints as commands", number)
    kind = ["linear_structural", "exogenous"][number % 2]
    made, _ = fitted(kind)
    told = spoilt(rng, shutil.copytree(made, tmp_path / "checkpoint"))
    task, rows = (
        (TASK, rows_of(REHEARSALS[0][1])) if kind in REHEARSED else (TRIALS[0], rows_of(experiments()))
    )
    (tmp_path / "table.csv").write_text(text_of(rows), encoding="utf-8")
    (tmp_path / "task.yaml").write_text(yaml.safe_dump(task), encoding="utf-8")
    typed = [*deciding("own_table" if kind in REHEARSED else "own_system"), "checkpoint=checkpoint"]
    judged(lambda: typed_in("decide", typed, number < PROCESSES), f"{kind}\n" + "\n".join(told), **LIMITS)
