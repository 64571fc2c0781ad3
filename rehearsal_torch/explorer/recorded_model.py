"""The fitted method of a run folder, or of a saved model, with what was recorded about it.

A run folder holds the checkpoint and the configuration of objective and search, and so all that answers need;
the rows of its table are not read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from rehearsal_torch.cli.build import plain, pooled
from rehearsal_torch.cli.errors import UserError
from rehearsal_torch.cli.run import method_of, suits
from rehearsal_torch.data.codings.recorded import card_in_words
from rehearsal_torch.evaluation.recorded_run import Decided, Recorded
from rehearsal_torch.explorer.run_material import checkpoint_of, existing, recorded, settings
from rehearsal_torch.reporting.page.material import Material, finite, mapping
from rehearsal_torch.surrogates.imputed import ImputedSurrogate
from rehearsal_torch.surrogates.overturning import RecordedStrengths
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.verbs.configured import in_words
from rehearsal_torch.verbs.learn import NODES
from rehearsal_torch.verbs.rehearsal_model import RehearsalModel
from rehearsal_torch.verbs.saving.saved_folder import METHOD
from rehearsal_torch.verbs.saving.saved_model import load

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
    whole = OmegaConf.create(config := settings(of))
    surrogate = load(checkpoint_of(folder, of.run.config))
    if not isinstance(surrogate, RehearsalSurrogate):
        raise UserError(
            f"expected the model of a rehearsal task; got a {type(surrogate).__name__}", str(folder)
        )
    with in_words():
        if isinstance(surrogate, ImputedSurrogate):
            pooled(whole, len(surrogate.each))
        method = method_of(whole)
        suits(method, surrogate)
    held = plain(whole)
    model = RehearsalModel(
        surrogate,
        method,
        {name: held.get(name, {}) for name in NODES},
        of.run.choices.get("decision", ""),
        int(config["seed"]),
        RecordedStrengths(surrogate.task, _strengths(of.run.decisions)),
        lambda: {"data": of.card},
    )
    return Opened(model, of, tuple(_notes(of.run.config)))


def _strengths(decisions: Sequence[Decided]) -> dict[tuple[str, ...], Mapping[str, float] | None]:
    """The strongest covariate for each set of variables that a decision of the run alters."""
    found: dict[tuple[str, ...], Mapping[str, float] | None] = {}
    for one in decisions:
        stated = mapping(one.get("sensitivity"))
        strength, covariate = finite(stated.get("yardstick")), stated.get("covariate")
        if strength is not None and strength >= 1 and isinstance(covariate, str) and covariate:
            found[tuple(mapping(one.get("alteration")))] = {covariate: strength}
    return found


def _notes(config: Mapping[str, Any]) -> list[str]:
    """What the decisions of the run rest on besides the checkpoint."""
    found = []
    if config.get("claims") == "cross_fitted":
        found.append(
            "The decisions of this run have claims from rows that did not choose (claims=cross_fitted). The "
            "numbers here are the method's own, and may be too optimistic for actions that it chose itself."
        )
    if mapping(config.get("certificate")):
        found.append("Certificates are not computed here; those of the decisions are in the run's report.")
    if config.get("graphs"):
        found.append("The other graphs that may be true (graphs=...) are not judged here.")
    return found
