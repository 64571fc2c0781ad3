"""Run folders and checkpoints of which every file may be damaged: taken up again, reported, loaded, and
decided with where they still load."""

import hashlib
import json
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
import safetensors.torch
import torch
import yaml
from hydra.utils import instantiate
from hypothesis import strategies as st

from rehearsal_torch.checkpoint import card, load, save
from rehearsal_torch.data.decision import RehearsalCase
from rehearsal_torch.data.non_finite import in_numbers
from rehearsal_torch.data.rehearsal_task import RehearsalTask
from rehearsal_torch.objectives.counterfactual_return import CounterfactualReturn, return_record
from rehearsal_torch.reporting.run_report import report
from rehearsal_torch.search.sequences.baselines import GreedyChanges
from rehearsal_torch.spaces.box import Box
from rehearsal_torch.training.surrogate_fit import fit
from tests.fuzz.commanded import typed_in
from tests.fuzz.decisions import CONFOUNDED, REHEARSALS, TRIALS, bound, experiments, search
from tests.fuzz.strategies import changed, copied, damaged
from tests.fuzz.verdicts import desk, fuzzed, judged, sound
from tests.toys.episodes import transition_episode
from tests.toys.rehearsal_methods import configuration, decided
from tests.toys.resuming import Finished

RUNS = {
    "rehearsal": [
        "+experiment=auf",
        "decision=care",
        "dataset.size.rows=30",
        "limit=2",
        "workers=1",
        "truth=false",
    ],
    "trials": [
        *["+experiment=cbo", "limit=2", "search.screened=16", "search.starts=6", "search.steps=5"],
        "objective.draws=8",
    ],
    "episodes": [
        *["+experiment=sepsis", "decision=greedy", "workers=1", "limit=2", "dataset.patients=60"],
        *["dataset.min_length=4", "dataset.horizon=5", "trainer.max_epochs=1", "trainer.progress=false"],
        *["surrogate.member.mechanism.hidden=8", "surrogate.member.levels=2"],
    ],
}
REHEARSED = {
    "linear_structural": ("gaussian_success", "projection_newton"),
    "nested_ridge": ("kernel_value", "projected_ascent"),
    "structural_posterior": ("success_probability", "informative"),
    "linear_scenarios": ("scenario_count", "mixed_integer"),
}
KINDS = [*REHEARSED, "exogenous", "transition", "linear_structural", "nested_ridge", "transition"]
TASK = {**CONFOUNDED, "candidates": [["a"]]}
TRANSITION = {
    "_target_": "rehearsal_torch.surrogates.transition.TransitionModel",
    "varying": ["x0", "x1"], "static": ["age"], "contextual": ["vent"], "doses": ["drug0"], "levels": 3,
    "mechanism": {
        "_target_": "rehearsal_torch.mechanisms.location_scale.LocationScale", "_partial_": True, "hidden": 8
    },
}  # fmt: skip


@cache
def finished(kind):
    """A finished run."""
    return Finished.of(Path(mkdtemp()), RUNS[kind])


@cache
def fitted(kind):
    """A checkpoint, and an episode for one that replays episodes."""
    folder = Path(mkdtemp()) / "checkpoint"
    if kind == "transition":
        objective = transition_episode(0, 4, 2, levels=3)
        return save(objective.surrogate, TRANSITION, folder), objective
    task = RehearsalTask.of(TASK).to_plain() if kind in REHEARSED else TRIALS[0]
    config = {**configuration("surrogate", kind), "task": copied(task)}
    if kind == "exogenous":
        config |= {"phi": "homoskedastic", "components": 1, "kernel": "rbf"}
    torch.manual_seed(0)
    rows = REHEARSALS[0][1] if kind in REHEARSED else experiments()
    return save(fit(instantiate(config, _convert_="all"), rows), config, folder), None


def files(folder):
    endings = (".yaml", ".json", ".jsonl", ".csv", ".safetensors")
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix in endings)
    return sorted(path for path in found if path.stat().st_size)


@st.composite
def weights_changed(draw, content):
    """Tensors that are changed and still written in their format."""
    tensors = safetensors.torch.load(content)
    name, other = draw(st.tuples(*[st.sampled_from(sorted(tensors))] * 2))
    tensor = tensors[name]
    change = draw(
        st.sampled_from(["scale", "scale", "scale", "cell", "cell", "form", "type", "swap", "gone", "more"])
    )
    if change == "type":
        types = [torch.float16, torch.float32, torch.float64, torch.int64, torch.bool, torch.bfloat16]
        tensors[name] = tensor.to(draw(st.sampled_from(types)))
    elif change == "form":
        forms = [
            tensor.flatten(),
            tensor[None],
            tensor[..., :-1] if tensor.ndim else tensor,
            tensor.new_zeros(0),
        ]
        tensors[name] = draw(st.sampled_from(forms))
    elif change == "cell" and tensor.is_floating_point() and tensor.numel():
        place = draw(st.integers(0, tensor.numel() - 1))
        tensor.view(-1)[place] = draw(st.sampled_from([float("nan"), float("inf"), 1e30, 1e-30, 0.0, -1.0]))
    elif change == "swap":
        tensors[name], tensors[other] = tensors[other], tensor
    elif change == "gone":
        del tensors[name]
    elif change == "more":
        tensors[draw(st.sampled_from([f"{name}x", "more", "task", "_extra_state", ""]))] = tensor
    else:
        factor = draw(st.sampled_from([0.0, -1.0, 1e6, 1e-9, 1e300, 3.0, 1.1, 0.9, 1.01, 0.5]))
        tensors[name] = (tensor.to(torch.float64) * factor).to(tensor.dtype)
    return safetensors.torch.save({key: value.contiguous().clone() for key, value in tensors.items()})


@st.composite
def edited(draw, path):
    """A file whose content somebody edited, and which is still of its format."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        lines = text.splitlines()
        place = draw(st.integers(0, len(lines) - 1))
        lines[place] = json.dumps(draw(changed(json.loads(lines[place]))))
        return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    if path.suffix == ".json":
        return json.dumps(draw(changed(json.loads(text))), allow_nan=True).encode("utf-8", "replace")
    return yaml.safe_dump(draw(changed(yaml.safe_load(text))), sort_keys=False).encode("utf-8", "replace")


def spoil(draw, folder):
    """Damages a file of a folder, or two."""
    for path in {draw(st.sampled_from(files(folder))) for _ in range(draw(st.integers(1, 2)))}:
        change = draw(st.sampled_from(["edit"] * 10 + ["damage"] * 8 + ["gone", "folder"]))
        if change in ("gone", "folder"):
            path.unlink()
        elif change == "damage" or path.suffix == ".csv":
            path.write_bytes(draw(damaged(path.read_bytes())))
        elif path.suffix == ".safetensors":
            path.write_bytes(draw(weights_changed(path.read_bytes())))
        else:
            path.write_bytes(draw(edited(path)))
        if change == "folder":
            path.mkdir()


@fuzzed
def test_runs(data):
    kind = data.draw(st.sampled_from(list(RUNS)))
    with desk() as folder, pytest.MonkeyPatch.context() as patch:
        # Pictures take half of the time.
        patch.setattr("rehearsal_torch.reporting.run_report.figures", lambda run, words: {})
        run = shutil.copytree(finished(kind).run, folder / "run")
        spoil(data.draw, run)
        if data.draw(st.booleans()):
            judged(lambda: report(run))
        else:
            finished(kind).handing_over(patch, run)
            judged(lambda: typed_in("decide", ["resume=run"]))


def used(kind, surrogate, episode):
    """Decides with what was loaded."""
    if kind == "transition":
        objective = CounterfactualReturn(surrogate, episode.case, episode.reward, 2)
        decision = GreedyChanges()(objective)
        sound(decision)
        return_record(objective, decision)
    elif kind in REHEARSED:
        given = {"x": torch.tensor(0.3, dtype=torch.float64)}
        case = RehearsalCase("1", given, Box.of({"a": (-1.5, 1.5)}).bounds())
        sound(decided(surrogate, REHEARSED[kind], [case])[0], case)
    else:
        case = RehearsalCase("1", {}, {"a": (0.0, 1.0), "b": (0.0, 2.0)})
        sound(search(bound(surrogate, case)), case)


def spoilt_checkpoint(draw, kind):
    """A damaged copy in the current folder; the card's SHA-256 mostly goes with it, as that of somebody who
    tampers would."""
    folder = Path(shutil.copytree(fitted(kind)[0], "checkpoint"))
    spoil(draw, folder)
    weights, said = folder / "weights.safetensors", folder / "card.yaml"
    if weights.is_file() and said.is_file() and draw(st.integers(0, 9)):
        said.write_text(yaml.safe_dump({"weights_sha256": hashlib.sha256(weights.read_bytes()).hexdigest()}))
    return folder


@fuzzed
def test_checkpoints(data):
    kind = data.draw(st.sampled_from(KINDS))
    episode = fitted(kind)[1]
    names = list(episode.case.episode.names) if episode else TASK if kind in REHEARSED else TRIALS[0]
    task = data.draw(st.sampled_from([None, names, names]))

    def work():
        surrogate = load(folder, task=task)
        card(folder)
        if task is not None:
            # As the loop that every method runs through does.
            with in_numbers("what was learnt"):
                used(kind, surrogate, episode)

    with desk():
        folder = spoilt_checkpoint(data.draw, kind)
        judged(work)
