"""The fitted method of a run folder, or of a saved model, with what was recorded about it.

The page shows the decisions and the data card beside the answers of the method (`verbs.saving.saved_run`).
"""

from dataclasses import dataclass
from pathlib import Path

from rehearsal_torch.checkpoint import configuration
from rehearsal_torch.checkpoint import load as load_surrogate
from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.data.codings.recorded import card_in_words
from rehearsal_torch.evaluation.recorded_run import Recorded
from rehearsal_torch.explorer.run_material import checkpoint_of, existing, recorded
from rehearsal_torch.reporting.page.material import Material, mapping
from rehearsal_torch.verbs.rehearsal_model import RehearsalModel
from rehearsal_torch.verbs.saving.saved_folder import METHOD
from rehearsal_torch.verbs.saving.saved_model import load
from rehearsal_torch.verbs.saving.saved_run import model_of_run, needed, notes

_ELSEWHERE = {"look_back": "episodes", "optimise": "trials"}


@dataclass(frozen=True)
class Opened:
    """A fitted method, and what its folder says.

    Attributes:
        model: The method.
        material: Data card, decisions and configuration; a saved model has a data card alone.
        notes: What its answers do not take into account, a sentence each.
    """

    model: RehearsalModel
    material: Material
    notes: tuple[str, ...] = ()


def opened(folder: str | Path) -> Opened:
    """Reads a run folder, or the folder of a saved model.

    Args:
        folder: A folder that ``rehearsal decide`` or `RehearsalModel.save` wrote.

    Raises:
        UserError: if there is no such folder, it is that of a sweep or of another kind of problem, or its
            method cannot be built.
        ValueError: if checkpoint or files are damaged.
    """
    folder = existing(folder)
    return _saved(folder) if (folder / METHOD).is_file() else _run(folder)


def _saved(folder: Path) -> Opened:
    found = load(folder)
    if not isinstance(found, RehearsalModel):
        raise UserError("card.yaml names no method.yaml, which is there", str(folder), "Save the model again")
    card = card_in_words(mapping(found.card.get("data")))
    return Opened(found, Material(Recorded(folder, kind="rehearse"), card))


def _run(folder: Path) -> Opened:
    of = recorded(folder)
    if of.run.kind != "rehearse":
        what = _ELSEWHERE.get(str(of.run.kind), "nothing that can be explored")
        raise UserError("holds no decisions for cases of a table", str(folder), f"It holds {what}")
    needed(of.run)
    place = checkpoint_of(folder, of.run.config)
    model = model_of_run(of.run, load_surrogate(place), configuration(place), {"data": of.card})
    return Opened(model, of, tuple(notes(of.run.config)))
