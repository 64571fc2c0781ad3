"""Whether a fitted surrogate answers the question it is used for, by comparing the fields of two tasks.

A question is a task (`RehearsalTask`, `CausalTask`), or, for episodes, the columns that are used. Fitting
depends on some of its fields; if one of those differs, the surrogate is refused with the name of the field.
The other fields are replaced by the new ones: a box with other bounds, or a region that the fit did not use.

Fields are sets of short strings, with ten digits per number, so that neither the order of a task's parts nor
its last bits matter, and differences can be shown as the elements of one side only.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rehearsal_torch.data.causal_task import CausalTask
from rehearsal_torch.data.known_reward import FunctionReward, KnownReward
from rehearsal_torch.data.rehearsal_task import RehearsalTask, task_of
from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.spaces.polytope import Polytope

# The kind of problem: "rehearse" (what to alter now, case by case), "optimise" (what to try next, round by
# round) or "look_back" (what should have been done in an episode).
Kind = Literal["rehearse", "optimise", "look_back"]
KINDS: tuple[Kind, ...] = ("rehearse", "optimise", "look_back")


class OtherQuestionError(ValueError):
    """The surrogate was fitted for another question; the message names each field that differs."""


@dataclass(frozen=True)
class Columns:
    """The columns of episodes, all available or all required ones, for surrogates without a task."""

    names: tuple[str, ...]


Question = RehearsalTask | CausalTask | Columns


def fields(question: Question) -> dict[str, frozenset[str]]:
    """The fields of a question, without bounds, on which no fit depends."""
    if isinstance(question, Columns):
        # A configuration of unknown origin may hold numbers for names.
        return {"columns": frozenset(str(name) for name in question.names)}
    common = {"graph": _edge_texts(question.graph), "actions": frozenset(question.box.names)}
    if isinstance(question, RehearsalTask):
        return common | {
            "context": frozenset(question.context),
            "outcomes": frozenset(question.outcomes),
            "region": _face_texts(question.region),
            "candidates": frozenset("{" + ", ".join(sorted(names)) + "}" for names in question.offered),
            "levels": frozenset(
                f"{name} in {{{', '.join(f'{value:.10g}' for value in values)}}}"
                for name, values in question.box.levels.items()
            ),
            "codings": frozenset(f"{coding.name}: {coding.words}" for coding in question.codings),
        }
    limits = frozenset[str]() if question.limits is None else _face_texts(question.limits)
    return common | {"nodes": frozenset(question.nodes), "reward": _terms(question.reward), "limits": limits}


def fingerprint(question: Question) -> str:
    """SHA-256 over the fields, equal for questions that differ only in order, in bounds, or in last bits."""
    # A task without codings has the fingerprint that it had before there were any.
    texts = {name: sorted(values) for name, values in fields(question).items() if values or name != "codings"}
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()


def like(own: Question, given: object) -> Question:
    """A question of the same kind, also from plain data; else an OtherQuestionError."""
    if isinstance(own, Columns):
        if isinstance(given, Sequence) and not isinstance(given, str):
            return Columns(tuple(str(name) for name in given))
    elif isinstance(given, Mapping):
        # What its codings leave to rows is what the fit found there.
        return task_of(given, known=own.coded) if isinstance(own, RehearsalTask) else own.of(given)
    if type(given) is type(own):
        return given
    raise OtherQuestionError(f"expected {_KINDS[type(own)]}; got a {type(given).__name__}")


_KINDS: dict[type, str] = {
    RehearsalTask: "a rehearsal task",
    CausalTask: "a task of causal optimisation",
    Columns: "episodes, by their columns",
}


def differences(fitted: Question, asked: Question, used: Sequence[str]) -> list[str]:
    """The fields that the fit used and in which the questions differ, each as a message."""
    fitted_with, asked_for = fields(fitted), fields(asked)
    if isinstance(fitted, Columns):
        absent = [name for name in fitted.names if name not in asked_for.get("columns", ())]
        return [f"columns: it needs {list(fitted.names)}; the data have no {absent}"] if absent else []
    faults = []
    # What the numbers of a fit mean is always used.
    for name in [*used, *(["codings"] if "codings" in fitted_with and "codings" not in used else [])]:
        before, now = sorted(fitted_with[name] - asked_for[name]), sorted(asked_for[name] - fitted_with[name])
        if before or now:
            faults.append(f"{name}: it was fitted with {_shown(before)}, and is used with {_shown(now)}")
    return faults


def taken(fitted: Question, asked: Question, used: Sequence[str]) -> Question:
    """The question to answer from now on: fields that the fit used keep their order, the others are new."""
    if isinstance(fitted, RehearsalTask) and isinstance(asked, RehearsalTask):
        return replace(
            asked,
            graph=fitted.graph,
            context=fitted.context,
            box=asked.box.only(fitted.box.names),
            region=fitted.region if "region" in used else asked.region,
            candidates=fitted.candidates if "candidates" in used else asked.candidates,
            holding=fitted.holding if "candidates" in used else asked.holding,
            codings=fitted.codings,
        )
    if isinstance(fitted, CausalTask) and isinstance(asked, CausalTask):
        limits, names = asked.limits, fitted.box.names
        if limits is not None:
            order = [limits.names.index(name) for name in names]
            limits = Polytope(names, limits.rows[:, order], limits.limits)
        reward = fitted.reward if "reward" in used else asked.reward
        box, context = asked.box.only(names), fitted.context
        return replace(asked, graph=fitted.graph, box=box, reward=reward, limits=limits, context=context)
    return fitted


def _shown(texts: Sequence[str]) -> str:
    shown = [text if len(text) <= 100 else f"{beginning(text, 100)}..." for text in texts[:6]]
    ending = [] if len(texts) <= 6 else [f"{len(texts) - 6} more"]
    return f"[{'; '.join([*shown, *ending])}]" if texts else "nothing in their place"


def _edge_texts(graph: RehearsalGraph) -> frozenset[str]:
    arrows = [f"{source} -> {target}" for source, target in graph.edges]
    joined = [" <-> ".join(sorted(clique)) for clique in graph.cliques]
    hidden = [f"{' <-> '.join(sorted(pair))} by a hidden cause" for pair in graph.hidden]
    return frozenset([*arrows, *joined, *hidden])


def _face_texts(region: Polytope) -> frozenset[str]:
    faces = []
    for normal, offset in zip(region.normals.tolist(), region.offsets.tolist(), strict=True):
        length = sum(weight * weight for weight in normal) ** 0.5
        terms = sorted((name, w / length) for name, w in zip(region.names, normal, strict=True) if w)
        # Adding 0.0 turns -0 into 0.
        if len(terms) == 1:
            ((name, weight),) = terms
            faces.append(f"{name} {'<=' if weight > 0 else '>='} {offset / length / weight + 0.0:.10g}")
        else:
            total = " + ".join(f"{weight:.10g} {name}" for name, weight in terms)
            faces.append(f"{total} <= {offset / length + 0.0:.10g}")
    return frozenset(faces)


def _terms(reward: KnownReward) -> frozenset[str]:
    if isinstance(reward, FunctionReward):
        return frozenset([f"a function ({reward.function!r}) of {', '.join(reward.nodes)}"])
    if reward.labels:
        return frozenset(reward.labels)
    terms = []
    for key, value in reward.to_plain().items():
        numbers = value.items() if isinstance(value, Mapping) else ()
        terms += [f"{key} {name} {number:.10g}" for name, number in numbers] or [f"{key} {value}"]
    return frozenset(terms)
