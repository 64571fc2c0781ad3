"""A run folder, or that of a saved model, opened for a page: what it records, and its fitted method.

As with every folder that may come from somebody else, nothing in it is unpickled, and only classes of this
package are built of its configuration (`methods.class_allowlist`). The page shows the decisions and the data
card beside the answers of the method (`api.load`).

A checkpoint holds no episodes: they are read again from where the run had them, and must be those of the run,
since answers are computed from the noise that the model finds in them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
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
from rehearsal_torch.evaluation.run_record import Recorded
from rehearsal_torch.files.similar_names import checkpoint_in
from rehearsal_torch.methods.run_parts import Run, build, suits
from rehearsal_torch.reporting.page.page_content import Material, mapping, material
from rehearsal_torch.surrogates.surrogate import EpisodeSurrogate
from rehearsal_torch.user_error import UserError

# The episodes of a run that the page offers.
MOST = 200


def existing(folder: str | Path) -> Path:
    """A folder that is there, and is not that of a sweep."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(
            "there is no such folder",
            str(folder),
            "Give the folder of a run, such as runs/own_problem/FOLDER",
        )
    if (folder / "sweep.json").is_file():
        raise UserError(
            "is the folder of a sweep", str(folder), f"Give the folder of one of its jobs: {folder}/*/"
        )
    return folder


def recorded(folder: Path) -> Material:
    """What a run folder records."""
    try:
        return material(folder)
    except FileNotFoundError as error:
        remedy = "Give the folder of a run, or of a model that was saved"
        raise UserError(str(error), "", remedy) from None


def checkpoint_of(folder: Path, config: Mapping[str, Any]) -> Path:
    """The checkpoint of a run: its own, or the one that it was given."""
    given = config.get("checkpoint")
    for folder_tried in (folder, *([Path(given)] if isinstance(given, str) else [])):
        checkpoint = checkpoint_in(folder_tried)
        if checkpoint is not None:
            return checkpoint
    elsewhere = f"; it decided with {given}, which is not there" if isinstance(given, str) else ""
    raise UserError(f"holds no checkpoint{elsewhere}", str(folder), "Run it again in another folder")


_ELSEWHERE = {"look_back": "episodes", "optimise": "trials"}


@dataclass(frozen=True)
class Opened:
    """A fitted method, and what its folder says.

    Attributes:
        material: Data card, decisions and configuration; a saved model has a data card alone.
        notes: What its answers do not take into account, a sentence each.
    """

    model: RehearsalModel
    material: Material
    notes: tuple[str, ...] = ()


def opened(folder: str | Path) -> Opened:
    """Reads a run folder, or the folder of a saved model."""
    folder = existing(folder)
    return _saved(folder) if (folder / METHOD).is_file() else _run(folder)


def _saved(folder: Path) -> Opened:
    model = load(folder)
    if not isinstance(model, RehearsalModel):
        raise UserError("card.yaml names no method.yaml, which is there", str(folder), "Save the model again")
    card = card_in_words(mapping(model.card.get("data")))
    return Opened(model, Material(Recorded(folder, kind="rehearse"), card))


def _run(folder: Path) -> Opened:
    of = recorded(folder)
    if of.run.kind != "rehearse":
        what = _ELSEWHERE.get(str(of.run.kind), "nothing that can be explored")
        raise UserError("holds no decisions for cases of a table", str(folder), f"It holds {what}")
    needed(of.run)
    checkpoint = checkpoint_of(folder, of.run.config)
    model = model_of_run(of.run, load_surrogate(checkpoint), configuration(checkpoint), {"data": of.card})
    return Opened(model, of, tuple(notes(of.run.config)))


@dataclass(frozen=True)
class OpenedEpisodes:
    """A fitted model of episodes, and what its folder says.

    Attributes:
        run: Problem, objective and search, as the run built them.
        cases: The episodes that the run decided for, up to `MOST`; those of its split if it decided for none.
        more: How many further ones there are.
        material: Data card, decisions and configuration.
    """

    surrogate: EpisodeSurrogate
    run: Run
    cases: tuple[EpisodeCase, ...]
    more: int
    material: Material


def opened_episodes(of: Material) -> OpenedEpisodes:
    """Reads the model of a run of episodes, and its episodes."""
    folder = of.run.path
    needed(of.run, (*NEEDED, "dataset", "surrogate"))
    # Nothing that the folder asks for is trusted.
    config = {**of.run.config, "trusted": []}
    surrogate = load_surrogate(checkpoint_of(folder, config))
    if not isinstance(surrogate, EpisodeSurrogate):
        raise UserError(f"expected a model of episodes; got a {type(surrogate).__name__}", str(folder))
    with undisturbed():
        run = _built(config, folder)
        suits(run, surrogate)
        _same(run, of, folder)
        named = [(decision.get("index"), decision.get("identity")) for decision in of.run.decisions]
        named = named or [(index, None) for index in range(run.problem.count())]
        cases = [_case(run, index, name, folder) for index, name in named[:MOST]]
        if not cases:
            raise UserError("holds no episodes to look back at", str(folder))
    return OpenedEpisodes(surrogate, run, tuple(cases), len(named) - len(cases), of)


def _built(config: dict[str, object], folder: Path) -> Run:
    try:
        run = build(OmegaConf.create(config))
    except (UserError, ValueError) as error:
        raise UserError(
            f"the episodes of the run cannot be read: {str(error).rstrip('.')}",
            str(folder),
            "A run keeps no episodes: have its data where they were, and start where the run was started",
        ) from None
    if run.kind != "look_back":
        raise UserError(f"expected a data set of episodes; got one of kind {run.kind}", str(folder))
    return run


def _same(run: Run, of: Material, folder: Path) -> None:
    """Refuses data that are not those of the run."""
    known, table = of.record.get("data_fingerprint"), of.card.get("fingerprint")
    changed = isinstance(known, str) and run.problem.observations().fingerprint() != known
    if changed or (table is not None and table != run.problem.card().get("fingerprint")):
        raise _changed(folder)


def _case(run: Run, index: object, name: object, folder: Path) -> EpisodeCase:
    """The episode of an index, which has to have the name that was recorded with it."""
    known = isinstance(index, int) and 0 <= index < run.problem.count()
    case = run.problem.case(index) if isinstance(index, int) and known else None
    if not isinstance(case, EpisodeCase) or (name is not None and str(name) != case.identity):
        raise _changed(folder)
    return case


def _changed(folder: Path) -> UserError:
    return UserError(
        "the episodes are no longer those of the run: its data, or its decisions, have changed since",
        str(folder),
        "Restore the files from a copy, or decide again",
    )
