"""The fitted method of a run on cases of a table: the model that decided there, to be asked again.

A run folder holds the checkpoint and the configuration of objective and search, and so all that answers need;
the rows of its table are not read. What hidden causes would have to do is known for the variables that the
run's decisions set: their strongest covariate is recorded there.

Nothing of the folder is unpickled, and of its configuration only classes of this package are built, or those
of modules that the caller trusts (`methods.allowed`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from omegaconf import OmegaConf

from rehearsal_torch.api.configured import in_words
from rehearsal_torch.api.model_card import LIMITS, intended_use
from rehearsal_torch.api.rehearsal_model import NODES, RehearsalModel, left_behind
from rehearsal_torch.data.sizes import check_seed
from rehearsal_torch.evaluation.recorded_run import Decided, Recorded
from rehearsal_torch.methods.build import pooled
from rehearsal_torch.methods.conf import plain
from rehearsal_torch.methods.run import method_of, suits
from rehearsal_torch.reporting.page.material import finite, mapping
from rehearsal_torch.surrogates.imputed import ImputedSurrogate
from rehearsal_torch.surrogates.overturning import RecordedStrengths
from rehearsal_torch.surrogates.rehearsal_surrogate import RehearsalSurrogate
from rehearsal_torch.user_error import UserError

NEEDED = ("objective", "search", "seed")
IN_REPORT = "see the report of the run"


def needed(run: Recorded, names: tuple[str, ...] = NEEDED) -> None:
    """Refuses a run whose checkpoint does not answer for its decisions, or whose configuration lacks a part.

    Raises:
        UserError: if a part is missing, or the run is an online one.
    """
    folder = str(run.path)
    if run.config.get("learn"):
        raise UserError(
            "is an online run, which fits again after every round: its checkpoint answers for no round",
            folder,
        )
    missing = [name for name in names if name not in run.config]
    if missing:
        raise UserError(
            f"config.yaml has no {' and no '.join(missing)}", folder, "Restore the file from a copy"
        )


def model_of_run(
    run: Recorded,
    surrogate: object,
    node: Mapping[str, Any],
    card: Mapping[str, Any],
    trusted: Sequence[str] = (),
) -> RehearsalModel:
    """The model of a run, with surrogate, its configuration (`node`) and card of the checkpoint.

    Raises:
        UserError: if the checkpoint is that of another kind of problem, or the configuration lacks a part.
        ValueError: if the method cannot be built, or asks for a class that is not trusted.
    """
    needed(run)
    seed = run.config["seed"]
    try:
        check_seed(seed)
    except ValueError as error:
        raise UserError(f"config.yaml: {error}", str(run.path), "Restore the file from a copy") from None
    if not isinstance(surrogate, RehearsalSurrogate):
        found = type(surrogate).__name__
        raise UserError(f"expected the model of a rehearsal task; got a {found}", str(run.path))
    whole = OmegaConf.create({**run.config, "trusted": list(trusted)})
    with in_words():
        if isinstance(surrogate, ImputedSurrogate):
            pooled(whole, len(surrogate.each))
        method = method_of(whole)
        suits(method, surrogate)
    held, own = plain(whole), {name for one in run.decisions for name in mapping(one.get("bounds"))}
    name = run.choices.get("decision", "")
    known = {
        "intended_use": intended_use(surrogate.task),
        "limits": list(LIMITS),
        "held_out": IN_REPORT,
        "method": name,
    }
    return RehearsalModel(
        surrogate,
        method,
        {**{group: held.get(group, {}) for group in NODES}, "surrogate": dict(node)},
        name,
        seed,
        RecordedStrengths(surrogate.task, _strengths(run.decisions)),
        lambda: {**known, **card},
        bounds_left=left_behind("cases of this run have of their own", own, surrogate.task),
        units={name: str(unit) for name, unit in mapping(run.words.get("units_of")).items() if unit},
    )


def notes(config: Mapping[str, Any]) -> list[str]:
    """What the decisions of a run rest on besides its model, a sentence each."""
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


def _strengths(decisions: Sequence[Decided]) -> dict[tuple[str, ...], Mapping[str, float] | None]:
    """The strongest covariate for each set of variables that a decision of the run alters."""
    found: dict[tuple[str, ...], Mapping[str, float] | None] = {}
    for one in decisions:
        stated = mapping(one.get("sensitivity"))
        strength, covariate = finite(stated.get("yardstick")), stated.get("covariate")
        if strength is not None and strength >= 1 and isinstance(covariate, str) and covariate:
            found[tuple(mapping(one.get("alteration")))] = {covariate: strength}
    return found
