"""Why these decisions, and what would overturn them: everything that a run recorded about it.

Reasons, support by data, certificates, hidden common causes (as odds of the action, or as partial R^2 for
episodes), other graphs, and proofs of optimality. Nothing is computed here but medians and counts, by the
functions that also serve the console, and what the recorded graph asks to adjust for (`graphs.separation`).
"""

from collections.abc import Mapping

from rehearsal_torch.data.codings.texts import recorded_codings
from rehearsal_torch.data.finding import reason_of
from rehearsal_torch.data.sensitivity import factor, share
from rehearsal_torch.evaluation import overturning
from rehearsal_torch.evaluation.recorded_run import Decided, effort
from rehearsal_torch.graphs.separation import adjustment
from rehearsal_torch.reporting.page.assumptions import graph_of, roles_in
from rehearsal_torch.reporting.page.markup import Markup, grouped, joined, name_of, paragraphs, table, tag
from rehearsal_torch.reporting.page.material import (
    Material,
    and_list,
    counted,
    finite,
    listed,
    mapping,
    named,
    shown,
)
from rehearsal_torch.reporting.wording import Wording

_DASH = "-"
# Candidate sets whose covariates are named one by one.
_SETS = 12
_SUPPORT = "Support is the method's own count of the observations that speak for a decision."
_DISTANCE = "Distance is that to the fifth most similar row, in standard deviations of context and action."
_NOTHING = "Nothing is recommended, so there is no recommendation that a hidden common cause could overturn."
_STRENGTH = (
    "Strength is the factor by which a hidden common cause would have to change how likely the action is, up "
    "or down, before the recommendation might be no better than no action; 1.00 means that the interval of "
    "the estimate contains no action already. It is compared with the strongest covariate that was observed."
)
_PROOF = (
    "Proven means that, under the fitted model, no sequence with as many changes has a larger return. It "
    "says nothing about how well the model describes the {subject}."
)


def why(of: Material) -> Markup:
    """The section's content; empty where a run recorded nothing of the kind."""
    decisions = of.run.decisions
    reasons = [(name_of(decision), reason) for decision in of.decisions if (reason := reason_of(decision))]
    parts = [
        paragraphs(_adjusted(of) if of.alterations else []),
        paragraphs(_overall(of)),
        _strengths(of.shown),
        _episodes(of.shown, of.words) if of.sequences else None,
        tag("h3", "Reasons given by the method") if reasons else None,
        grouped(reasons, len(decisions), *of.nouns),
        _certificates(of.shown),
        _next_trial(decisions[-1]) if of.trials else None,
    ]
    return joined(part for part in parts if part)


def _adjusted(of: Material) -> list[str]:
    """For each candidate set, among which rows it is compared; empty where the card has no graph that can be
    read.
    """
    try:
        graph = graph_of(of.card)
        if graph is None:
            return []
        context, alterable, outcomes = roles_in(graph, of.card)
        columns = recorded_codings(of.card.get("codings")).values()
        called = {column: names_of_set.name for names_of_set in columns for column in names_of_set.columns}
        sets = [
            tuple(dict.fromkeys(called.get(str(name), str(name)) for name in listed(names_of_set)))
            for names_of_set in listed(of.card.get("candidates")) or [[name] for name in alterable]
        ]
        sets_with = [
            (names, adjustment(graph, context, names, outcomes))
            for names in dict.fromkeys(sets)
            if names and set(names) <= set(graph.names)
        ]
    except (ValueError, TypeError, KeyError):
        return []
    sentences = []
    for names, covariates in sets_with[:_SETS]:
        every = [*context, *covariates.before, *covariates.between]
        among = f"among rows alike in {and_list(every)}" if every else "among all rows, adjusted for nothing"
        if of.record.get("by_adjustment"):
            adjusted = " (the covariates adjusted for)" if every else ""
            sentences.append(f"Settings of {and_list(names)} are compared {among}{adjusted}.")
        else:
            sentences.append(
                f"By the graph it suffices to compare settings of {and_list(names)} {among}; the method "
                "itself fits the equations of the graph."
            )
        if covariates.reasons:
            sentences[-1] += f" That does not suffice: {'; '.join(covariates.reasons)}."
    more = len(sets_with) - len(sentences)
    return [
        *sentences,
        *([f"{counted(more, 'further candidate set')}: see model.explain."] if more > 0 else []),
    ]


def _overall(of: Material) -> list[str]:
    decisions = of.run.decisions
    if of.sequences:
        return [text for text in [overturning.sequences_overall(decisions, of.words.actions)] if text]
    if of.alterations:
        if all(decision.get("alteration") is None for decision in decisions):
            return [_NOTHING]
        return [
            text for text in (overturning.overall(decisions), overturning.graphs_overall(decisions)) if text
        ]
    return []


def _strengths(decisions: list[Decided]) -> Markup | None:
    """Case by case: strengths of hidden causes, support and distance, with what these words mean."""
    rows, weighed = [], False
    for decision in decisions:
        sensitivity = overturning.sensitivity_of(decision)
        support, distance = (finite(effort(decision, name)) for name in ("support", "distance"))
        if sensitivity is None and support is None and distance is None:
            continue
        weighed = weighed or sensitivity is not None
        strongest = (
            _DASH
            if sensitivity is None or sensitivity.yardstick is None
            else f"{sensitivity.covariate}: {factor(sensitivity.yardstick)}"
        )
        rows.append(
            [
                name_of(decision),
                _DASH if sensitivity is None else factor(sensitivity.tipping),
                strongest,
                _DASH if sensitivity is None else sensitivity.basis,
                _DASH if support is None else shown(support),
                _DASH if distance is None else shown(distance),
            ]
        )
    if not rows:
        return None
    heads = ["case", "strength to overturn", "strongest covariate", "starts from", "support", "distance"]
    caption = (
        "What would overturn each decision, and the observations near it"
        if weighed
        else "The observations near each decision"
    )
    # A column that has nothing to say is left out.
    kept = [column for column in range(len(heads)) if any(row[column] != _DASH for row in rows)]
    meaning = {"strength to overturn": _STRENGTH, "support": _SUPPORT, "distance": _DISTANCE}
    notes = [meaning[heads[column]] for column in kept if heads[column] in meaning]
    words = [new for new, column in enumerate(kept) if column in (0, 2, 3)]
    shown_table = table(
        caption, [heads[column] for column in kept], [[row[column] for column in kept] for row in rows], words
    )
    return joined([shown_table, tag("p", " ".join(notes), class_="soft")])


def _episodes(decisions: list[Decided], words: Wording) -> Markup | None:
    """Episode by episode: strengths of hidden causes, and the state of the proof."""
    rows = []
    for decision in decisions:
        cause = overturning.hidden_cause_of(decision)
        proven, gap = effort(decision, "proven"), finite(effort(decision, "gap"))
        rows.append(
            [
                name_of(decision),
                _DASH if cause is None else "none" if cause.tipping == 1 else share(cause.tipping),
                _DASH
                if cause is None or cause.yardstick is None
                else f"{cause.covariate}: {share(cause.yardstick)}",
                _DASH if proven is None else "yes" if proven else "no",
                _DASH if gap is None else shown(gap),
            ]
        )
    if not any(set(row[1:]) - {_DASH} for row in rows):
        return None
    heads = [
        words.episode,
        "partial R² to overturn",
        "strongest covariate",
        "proven",
        "gap to the best bound",
    ]
    caption = "What would overturn each decision, and whether it is the best under the model"
    notes = [
        (name_of(decision), str(text)) for decision in decisions if (text := effort(decision, "hidden_cause"))
    ]
    return joined(
        [
            table(caption, heads, rows, texts=(0, 2, 3)),
            tag("p", _PROOF.format(subject=words.subject), class_="soft"),
            grouped(notes, 0, words.episode, words.episodes),
        ]
    )


def _certificates(decisions: list[Decided]) -> Markup | None:
    """The certificates, as they were recorded: numbers with their names, and what they bound."""
    rows, notes = [], list[str]()
    for decision in decisions:
        certificate = mapping(decision.get("certificate"))
        if certificate:
            words = {name: str(value) for name, value in certificate.items() if isinstance(value, str)}
            notes += [f"{name.replace('_', ' ')}: {value}" for name, value in words.items()]
            bounds = {key.replace("_", " "): value for key, value in certificate.items() if key not in words}
            rows.append([name_of(decision), named(bounds)])
    if not rows:
        return None
    what = "; ".join(dict.fromkeys(notes))
    return joined(
        [
            tag("h3", "Certificates"),
            table("Bounds under the model, as recorded", ["case", "bounds"], rows, texts=(0, 1)),
            tag("p", what, class_="soft") if what else None,
        ]
    )


def _next_trial(last: Decided) -> Markup | None:
    """Why the last trial was tried, and the best tried action beside the recommended one."""
    trace = mapping(last.get("trace"))
    sentences = []
    wanted, predicted = finite(trace.get("acquisition")), finite(trace.get("predicted_reward"))
    if wanted is not None:
        sentences.append(
            "A trial is chosen for what it may bring or teach: the last one had the largest acquisition "
            f"value that the search found, {shown(wanted)}"
            + ("" if predicted is None else f", with a predicted reward of {shown(predicted)}")
            + f", among {counted(int(finite(trace.get('evaluations')) or 0), 'evaluated setting')}."
        )
    beside = trace.get("runner_up")
    if isinstance(beside, Mapping):
        sentences.append(f"The best tried setting beside the recommended one: {named(mapping(beside))}.")
    return paragraphs(sentences) if sentences else None
