"""Loads a run folder, or the folder of a saved model, for a page: its fitted method, and what it records.

Nothing in a folder, which may come from somebody else, is unpickled, and only classes of this package are
built of its configuration (`methods.class_allowlist`). A checkpoint holds no episodes: they are read again
from where the run had them, and must be those of the run, since answers use the noise that the model finds in
them. Reward and rules are those that the run recorded, also where its problem file has changed since.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from rehearsal_torch.api.fit_and_decide import undisturbed
from rehearsal_torch.api.load import NEEDED, load, model_of_run, needed, notes
from rehearsal_torch.api.rehearsal_model import RehearsalModel
from rehearsal_torch.checkpoint import METHOD, configuration
from rehearsal_torch.checkpoint import load as load_surrogate
from rehearsal_torch.data.codings.decision_texts import card_in_words
from rehearsal_torch.data.decision import EpisodeCase
from rehearsal_torch.data.finding import findings_of
from rehearsal_torch.evaluation.run_record import Recorded
from rehearsal_torch.files.similar_names import checkpoint_in
from rehearsal_torch.methods.run_parts import Run, build, method_of, suits
from rehearsal_torch.reporting.page.page_content import Material, listed, mapping, material
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate
from rehearsal_torch.user_error import UserError

# Characters of the name of data in a title, at most.
LONGEST = 60
# Kinds of findings that stand beside the case and beside the action; all others concern the answer.
CASE = ("context", "identifier")
ACTION = ("range", "support", "present", "unused", "values", "few_comparable")


def source_of(material: Material) -> str:
    """What the data of a run are called."""
    run, source = material.run, material.card.get("source")
    choice = run.choices.get("dataset") or run.path.resolve().name
    return Path(source).name if isinstance(source, str) and len(source) <= LONGEST else str(choice)


def cautions_of(material: Material) -> list[str]:
    """What is to be known before anything else."""
    return [str(material.card["caution"])] if "caution" in material.card else []


def beside(material: Material, notes: Sequence[str] = ()) -> dict[str, list[str]]:
    """Findings of the data and of the training, and `notes`, by the part of a page that they concern."""
    findings = [(finding.kind, finding.text) for finding in findings_of(material.card)]
    general = [*notes, *map(str, listed(material.record.get("training_faults")))]
    return {
        "case": [text for kind, text in findings if kind in CASE],
        "action": [text for kind, text in findings if kind in ACTION],
        "answer": general + [text for kind, text in findings if kind not in (*CASE, *ACTION)],
    }


def existing(folder: str | Path) -> Path:
    """The folder as a path; a UserError if it does not exist, or is that of a sweep."""
    folder = Path(folder)
    if not folder.is_dir():
        remedy = "Give the folder of a run, such as runs/own_problem/FOLDER"
        raise UserError("there is no such folder", str(folder), remedy)
    if (folder / "sweep.json").is_file():
        remedy = f"Give the folder of one of its jobs: {folder}/*/"
        raise UserError("is the folder of a sweep", str(folder), remedy)
    return folder


def recorded(folder: Path) -> Material:
    """What a run folder records."""
    try:
        return material(folder)
    except FileNotFoundError as error:
        remedy = "Give the folder of a run, or of a model that was saved"
        raise UserError(str(error), "", remedy) from None


def located(path: str, folder: Path) -> str:
    """A relative path where it exists: from the current folder, else from one that holds the run."""
    found = (str(parent / path) for parent in folder.resolve().parents if (parent / path).exists())
    return path if Path(path).exists() else next(found, path)


def checkpoint_of(folder: Path, config: Mapping[str, Any]) -> Path:
    """The checkpoint of a run: its own, or the one that it was given."""
    configured = config.get("checkpoint")
    for candidate in (folder, *([Path(located(configured, folder))] if isinstance(configured, str) else [])):
        checkpoint = checkpoint_in(candidate)
        if checkpoint is not None:
            return checkpoint
    elsewhere = f"; it decided with {configured}, which is not there" if isinstance(configured, str) else ""
    raise UserError(f"holds no checkpoint{elsewhere}", str(folder), "Run it again in another folder")


_CONTENT_OF_KIND = {"look_back": "episodes", "optimise": "trials"}


@dataclass(frozen=True)
class Opened:
    """A fitted method, what its folder records, and what its answers leave out, a sentence each."""

    model: RehearsalModel
    material: Material
    notes: tuple[str, ...] = ()


def opened(folder: str | Path) -> Opened:
    """Loads a run folder, or the folder of a saved model."""
    folder = existing(folder)
    return _open_saved_model(folder) if (folder / METHOD).is_file() else _open_run(folder)


def _open_saved_model(folder: Path) -> Opened:
    model = load(folder)
    if not isinstance(model, RehearsalModel):
        raise UserError("card.yaml names no method.yaml, which is there", str(folder), "Save the model again")
    card = card_in_words(mapping(model.card.get("data")))
    return Opened(model, Material(Recorded(folder, kind="rehearse"), card))


def _open_run(folder: Path) -> Opened:
    content = recorded(folder)
    run = content.run
    if run.kind != "rehearse":
        kind = _CONTENT_OF_KIND.get(str(run.kind), "nothing that can be explored")
        raise UserError("holds no decisions for cases of a table", str(folder), f"It holds {kind}")
    needed(run)
    checkpoint = checkpoint_of(folder, run.config)
    model = model_of_run(run, load_surrogate(checkpoint), configuration(checkpoint), {"data": content.card})
    return Opened(model, content, tuple(notes(run.config)))


@dataclass(frozen=True)
class OpenedEpisodes:
    """A fitted model of episodes, and what its folder records.

    Attributes:
        run: Problem, objective and search, as the run built them.
        cases: The episodes that the run decided for; those of its split if it decided for none.
        notes: What has changed since the run, a sentence each.
    """

    surrogate: EpisodeSurrogate
    run: Run
    cases: tuple[EpisodeCase, ...]
    material: Material
    notes: tuple[str, ...] = ()


def opened_episodes(of: Material) -> OpenedEpisodes:
    """Loads the model of a run of episodes, and its episodes."""
    folder = of.run.path
    needed(of.run, (*NEEDED, "dataset", "surrogate"))
    # Nothing that the folder asks for is trusted.
    dataset = {
        key: located(value, folder) if key in ("path", "task") and isinstance(value, str) else value
        for key, value in mapping(of.run.config["dataset"]).items()
    }
    config = {**of.run.config, "dataset": dataset, "trusted": []}
    surrogate = load_surrogate(checkpoint_of(folder, config))
    if not isinstance(surrogate, EpisodeSurrogate):
        raise UserError(f"expected a model of episodes; got a {type(surrogate).__name__}", str(folder))
    with undisturbed():
        run, notes = _as_recorded(_build_run(config, folder), of)
        suits(run, surrogate)
        _check_fingerprint(run, of, folder)
        identities = [(decision.get("index"), decision.get("identity")) for decision in of.run.decisions]
        identities = identities or [(index, None) for index in range(run.problem.count())]
        cases = [_case(run, index, name, folder) for index, name in identities]
        if not cases:
            raise UserError("holds no episodes to look back at", str(folder))
    return OpenedEpisodes(surrogate, run, tuple(cases), of, notes)


def _as_recorded(run: Run, of: Material) -> tuple[Run, tuple[str, ...]]:
    """The run with the recorded objective, and a sentence if today's files give another one."""
    built = mapping(run.config["objective"])
    reward = {"reward": of.record["reward"]} if mapping(of.record.get("reward")) else {}
    objective = mapping(of.run.parts.get("objective")) or built | reward
    if objective == built:
        return run, ()
    differing = [name for name in ("reward", "rules") if objective.get(name) != built.get(name)]
    source = of.run.config.get("path") or "the problem file"
    what = " and ".join(differing) or "its settings"
    note = f"{source} has changed since the run ({what}): answers are by what the run recorded"
    method = method_of(OmegaConf.create({**run.config, "objective": objective}))
    return replace(run, objective=method.objective), (note,)


def _build_run(config: dict[str, object], folder: Path) -> Run:
    try:
        run = build(OmegaConf.create(config))
    except (UserError, ValueError) as error:
        problem = f"the episodes of the run cannot be read: {str(error).rstrip('.')}"
        remedy = "A run keeps no episodes: have its data where they were"
        raise UserError(problem, str(folder), remedy) from None
    if run.kind != "look_back":
        raise UserError(f"expected a data set of episodes; got one of kind {run.kind}", str(folder))
    return run


def _check_fingerprint(run: Run, content: Material, folder: Path) -> None:
    """Refuses a data set whose fingerprint is not that of the run."""
    expected, expected_table = content.record.get("data_fingerprint"), content.card.get("fingerprint")
    differs = isinstance(expected, str) and run.problem.observations().fingerprint() != expected
    if differs or (expected_table is not None and expected_table != run.problem.card().get("fingerprint")):
        raise _changed_error(folder)


def _case(run: Run, index: object, name: object, folder: Path) -> EpisodeCase:
    """The episode with this index; its name must be the recorded one."""
    in_range = isinstance(index, int) and 0 <= index < run.problem.count()
    case = run.problem.case(index) if isinstance(index, int) and in_range else None
    if not isinstance(case, EpisodeCase) or (name is not None and str(name) != case.identity):
        raise _changed_error(folder)
    return case


def _changed_error(folder: Path) -> UserError:
    return UserError(
        "the episodes are no longer those of the run: its data, or its decisions, have changed since",
        str(folder),
        "Restore the files from a copy, or decide again",
    )
