"""Sections of a report on what its answers rest on: reasons and sensitivity; assumptions and graph; warnings.

Reasons, support by data, certificates, hidden common causes (as odds of the action, or as partial R^2 for
episodes), other graphs, and proofs of optimality are shown as they were recorded. Nothing is computed here
but counts, by the functions that also serve the console, and what the recorded graph asks to
adjust for (`graphs.separation`). The graph of the data card is drawn from left to right; one of more than
`DRAWN` variables is listed, not drawn.
"""

import warnings
from collections.abc import Iterable
from typing import Any

from rehearsal_torch.data.codings.decision_texts import recorded_codings
from rehearsal_torch.data.finding import reason_of, texts_of
from rehearsal_torch.data.sensitivity import factor, share
from rehearsal_torch.evaluation import overturning_sentences
from rehearsal_torch.evaluation.run_record import Decided, claim, effort
from rehearsal_torch.graphs.mixed_graph import RehearsalGraph
from rehearsal_torch.graphs.separation import adjustment
from rehearsal_torch.reporting import no_action_score
from rehearsal_torch.reporting.figure_style import drawing, svg
from rehearsal_torch.reporting.figures.graph_figure import graph_figure
from rehearsal_torch.reporting.labels import Wording, telling_gap
from rehearsal_torch.reporting.page.data_card import region, settable
from rehearsal_torch.reporting.page.html import (
    Markup,
    bullets,
    grouped,
    joined,
    name_of,
    paragraphs,
    table,
    tag,
)
from rehearsal_torch.reporting.page.inline_figures import embedded
from rehearsal_torch.reporting.page.page_content import (
    Material,
    and_list,
    counted,
    finite,
    listed,
    mapping,
    named,
    shown,
)

DRAWN, LISTED = 40, 400
# Assumptions, by the kind of a run.
ALTERATIONS = (
    "Chances are estimated from past rows. They hold for actions only if the graph is right and no hidden "
    "common cause of an action and an outcome is missing from it.",
    "An interval covers noise and small samples, not a wrong graph.",
)
TRIALS = (
    "Each node is a function of its parents, of actions and of noise of its own; a hidden common cause would "
    "have to be measured and included.",
    "A predicted reward is the model's expectation, not a measurement.",
)
SEQUENCES = (
    "An episode is replayed under other actions with the noise that the fitted model finds in it; the model, "
    "not a trial, says what would have happened.",
    "It is assumed that no hidden common cause acts on both the actions and the states.",
)
_LEGEND = (
    ("X, Z, Y", "known before deciding, in between, outcomes"),
    ("solid arrow", "direct influence"),
    ("dashed line", "two heads: a hidden common cause, or mutual influence"),
    ("thick frame", "may be set"),
)
_UNKNOWN = "The run left no status: it was killed, or has not ended yet; the page shows what there was."
_DASH = "-"
# Candidate sets whose covariates are named one by one.
_MOST_SETS = 12
_SUPPORT = "Support is the method's own count of the observations that speak for a decision."
_BEYOND = "Of such cases, whose covariates differ, some have no row near them with these settings."
_DISTANCE = "Distance is that to the fifth most similar row, in standard deviations of context and action."
_NOTHING = "Nothing is recommended, so there is no recommendation that a hidden common cause could overturn."
_STRENGTH = (
    "Strength is the factor by which a hidden common cause would have to change how likely the action is, up "
    "or down, before the recommendation might be no better than no action; 1.00 means that the interval of "
    "the estimate contains no action already. It is compared with the strongest covariate that was observed."
)
_PROOF = (
    "Proven means that, under the fitted model, no allowed sequence has a larger return. It "
    "says nothing about how well the model describes the {subject}."
)


def why(report: Material) -> Markup:
    """Reasons and sensitivity of the decisions; empty where a run recorded nothing of the kind."""
    decisions = report.run.decisions
    reasons = [
        (name_of(decision), reason) for decision in report.decisions if (reason := reason_of(decision))
    ]
    parts = [
        paragraphs(_adjustment_sentences(report) if report.alterations else []),
        paragraphs(_overall_sentences(report)),
        _sensitivity_table(report.shown),
        _episode_table(report.shown, report.words) if report.sequences else None,
        tag("h3", "Reasons given by the method") if reasons else None,
        grouped(reasons, len(decisions), *report.nouns),
        _certificate_table(report.shown),
        _last_trial_reasons(decisions[-1]) if report.trials else None,
    ]
    return joined(part for part in parts if part)


def _adjustment_sentences(report: Material) -> list[str]:
    """For each candidate set, the rows among which it is compared; empty without a readable graph."""
    try:
        graph = graph_of(report.card)
        if graph is None:
            return []
        context, alterable, outcomes = roles_in(graph, report.card)
        codings = recorded_codings(report.card.get("codings")).values()
        variable_of = {column: coding.name for coding in codings for column in coding.columns}
        sets = [
            tuple(dict.fromkeys(variable_of.get(str(name), str(name)) for name in listed(names)))
            for names in listed(report.card.get("candidates")) or [[name] for name in alterable]
        ]
        adjustments = [
            (names, adjustment(graph, context, names, outcomes))
            for names in dict.fromkeys(sets)
            if names and set(names) <= set(graph.names)
        ]
    except (ValueError, TypeError, KeyError):
        return []
    sentences = []
    for names, covariates in adjustments[:_MOST_SETS]:
        strata = and_list([*context, *covariates.before, *covariates.between])
        among = f"among rows alike in {strata}" if strata else "among all rows, adjusted for nothing"
        if covariates.front_door:
            before = and_list([*context, *covariates.before])
            alike = f", among rows alike in {before}" if before else ""
            sentence = (
                f"A hidden cause joins {and_list(names)} and the outcome: what settings do is told through "
                f"{and_list(covariates.between)} (the front door){alike}."
            )
        elif report.record.get("by_adjustment"):
            note = " (the covariates adjusted for)" if strata else ""
            sentence = f"Settings of {and_list(names)} are compared {among}{note}."
        else:
            sentence = (
                f"By the graph it suffices to compare settings of {and_list(names)} {among}; the method "
                "itself fits the equations of the graph."
            )
        unmet = "; ".join(covariates.reasons)
        sentences.append(f"{sentence} That does not suffice: {unmet}." if unmet else sentence)
    more = len(adjustments) - len(sentences)
    return sentences + ([f"{counted(more, 'further candidate set')}: see model.explain."] if more > 0 else [])


def _overall_sentences(report: Material) -> list[str]:
    decisions = report.run.decisions
    if report.sequences:
        texts = [overturning_sentences.sequences_overall(decisions, report.words.actions)]
    elif not report.alterations:
        texts = []
    elif all(decision.get("alteration") is None for decision in decisions):
        texts = [_NOTHING]
    else:
        texts = [overturning_sentences.overall(decisions), overturning_sentences.graphs_overall(decisions)]
    return [text for text in texts if text]


def _sensitivity_table(decisions: list[Decided]) -> Markup | None:
    """Table by case: strengths of hidden causes, support and distance, with what these words mean."""
    rows, has_sensitivity = [], False
    for decision in decisions:
        sensitivity = overturning_sentences.sensitivity_of(decision)
        beyond, *near = (finite(effort(decision, name)) for name in ("beyond", "support", "distance"))
        if sensitivity is None and beyond is None and near == [None, None]:
            continue
        cells = [_DASH] * 3
        if sensitivity is not None:
            has_sensitivity = True
            strongest = sensitivity.yardstick
            covariate = _DASH if strongest is None else f"{sensitivity.covariate}: {factor(strongest)}"
            cells = [factor(sensitivity.tipping), covariate, sensitivity.basis]
        missing = _DASH if beyond is None else share(beyond)
        numbers = (_DASH if value is None else shown(value) for value in near)
        rows.append([name_of(decision), *cells, missing, *numbers])
    if not rows:
        return None
    heads = ["case", "strength to overturn", "strongest covariate", "starts from"]
    heads += ["no row near for", "support", "distance"]
    both = "What would overturn each decision, and the observations near it"
    caption = both if has_sensitivity else "The observations near each decision"
    # An empty column is left out.
    columns = [column for column in range(len(heads)) if any(row[column] != _DASH for row in rows)]
    meaning = {
        "strength to overturn": _STRENGTH,
        "no row near for": _BEYOND,
        "support": _SUPPORT,
        "distance": _DISTANCE,
    }
    notes = [meaning[heads[column]] for column in columns if heads[column] in meaning]
    text_columns = [new for new, column in enumerate(columns) if column in (0, 2, 3)]
    body = [[row[column] for column in columns] for row in rows]
    observations = table(caption, [heads[column] for column in columns], body, text_columns)
    return joined([observations, tag("p", " ".join(notes), class_="soft")])


def _episode_table(decisions: list[Decided], words: Wording) -> Markup | None:
    """Table by episode: strengths of hidden causes, and the state of the proof."""
    rows = []
    for decision in decisions:
        cause = overturning_sentences.hidden_cause_of(decision)
        ends = finite(decision.get("value")), finite(claim(decision, of="baseline"))
        proven, gap = effort(decision, "proven"), telling_gap(finite(effort(decision, "gap")), *ends)
        tipping, strongest = _DASH, _DASH
        if cause is not None:
            tipping = "none" if cause.tipping == 1 else share(cause.tipping)
            strongest = _DASH if cause.yardstick is None else f"{cause.covariate}: {share(cause.yardstick)}"
        state = [_DASH if proven is None else "yes" if proven else "no", _DASH if gap is None else shown(gap)]
        rows.append([name_of(decision), tipping, strongest, *state])
    if not any(set(row[1:]) - {_DASH} for row in rows):
        return None
    columns = ["partial R² to overturn", "strongest covariate", "proven", "gap to the best bound"]
    caption = "What would overturn each decision, and whether it is the best under the model"
    notes = [
        (name_of(decision), str(text)) for decision in decisions if (text := effort(decision, "hidden_cause"))
    ]
    overview = table(caption, [words.episode, *columns], rows, texts=(0, 2, 3))
    proof = tag("p", _PROOF.format(subject=words.subject), class_="soft")
    return joined([overview, proof, grouped(notes, 0, words.episode, words.episodes)])


def _certificate_table(decisions: list[Decided]) -> Markup | None:
    """Table of the recorded certificates: numbers with their names, and what they bound."""
    rows, notes = [], list[str]()
    for decision in decisions:
        certificate = mapping(decision.get("certificate"))
        if certificate:
            texts = {name: str(value) for name, value in certificate.items() if isinstance(value, str)}
            notes += [f"{name.replace('_', ' ')}: {value}" for name, value in texts.items()]
            bounds = {key.replace("_", " "): value for key, value in certificate.items() if key not in texts}
            rows.append([name_of(decision), named(bounds)])
    if not rows:
        return None
    bounded = table("Bounds under the model, as recorded", ["case", "bounds"], rows, texts=(0, 1))
    legend = "; ".join(dict.fromkeys(notes))
    return joined([tag("h3", "Certificates"), bounded, tag("p", legend, class_="soft") if legend else None])


def _last_trial_reasons(last: Decided) -> Markup | None:
    """Why the last trial was tried, and the best tried action beside the recommended one."""
    trace = mapping(last.get("trace"))
    sentences = []
    acquisition, predicted = finite(trace.get("acquisition")), finite(trace.get("predicted_reward"))
    if acquisition is not None:
        reward = "" if predicted is None else f", with a predicted reward of {shown(predicted)}"
        count = counted(int(finite(trace.get("evaluations")) or 0), "evaluated setting")
        sentences.append(
            "A trial is chosen for what it may bring or teach: the last one had the largest acquisition "
            f"value that the search found, {shown(acquisition)}{reward}, among {count}."
        )
    if runner_up := mapping(trace.get("runner_up")):
        sentences.append(f"The best tried setting beside the recommended one: {named(runner_up)}.")
    return paragraphs(sentences) if sentences else None


def assumptions(report: Material) -> Markup:
    """The assumptions of the run, and its graph."""
    sentences = (
        ALTERATIONS
        if report.alterations
        else TRIALS
        if report.trials
        else SEQUENCES
        if report.sequences
        else ()
    )
    try:
        graph = graph_of(report.card)
        if graph is None:
            parts = [tag("p", "The run recorded no graph.")]
        else:
            parts = [_graph_picture(graph, report), _graph_in_words(graph)]
    except (ValueError, TypeError) as error:
        parts = [tag("p", f"The graph in data.yaml cannot be drawn: {error}.")]
    return joined([paragraphs(sentences), *parts])


def graph_of(card: dict[str, Any]) -> RehearsalGraph | None:
    """The graph of a data card, None if there is none; ValueError or TypeError if it cannot be read."""
    plain = mapping(card.get("graph"))
    if not plain:
        return None
    cliques = tuple(tuple(map(str, listed(clique))) for clique in listed(plain.get("cliques")))
    return RehearsalGraph(cliques, _pairs(plain.get("edges")), _pairs(plain.get("hidden")))


def _graph_picture(graph: RehearsalGraph, report: Material) -> Markup:
    """The figure with its legend, or a sentence on a graph that is too large."""
    if len(graph.names) > DRAWN:
        return tag("p", f"The graph has {len(graph.names)} variables, too many to be drawn.")
    roles = roles_in(graph, report.card)
    with warnings.catch_warnings(), drawing():
        # Letters that matplotlib's font lacks are drawn by the browser, with its own.
        warnings.filterwarnings("ignore", r"Glyph .* missing from")
        picture = svg(graph_figure(graph, *roles))
    size = f"{counted(len(graph.names), 'variable')} with {counted(len(graph.edges), 'arrow')}"
    alternative = f"Causal graph of {size}; all of them are listed below."
    absent = {"dashed line": not graph.bidirected, "thick frame": not roles[1]}
    legend = [joined([tag("b", sign), f" {meaning}"]) for sign, meaning in _LEGEND if not absent.get(sign)]
    figure = embedded(picture, alternative, "The causal graph, as it was given.")
    return joined([figure, bullets(legend, "legend")])


def roles_in(graph: RehearsalGraph, card: dict[str, Any]) -> tuple[list[str], list[str], list[str]]:
    """Context, alterable variables and outcomes, as far as the graph has them."""
    region_names = listed(mapping(card.get("region")).get("names"))
    reward = mapping(card.get("reward"))
    outcomes = region_names or [*mapping(reward.get("weights")), *mapping(reward.get("targets"))]

    def in_graph(names: Iterable[object]) -> list[str]:
        return [str(name) for name in dict.fromkeys(names) if str(name) in graph.names]

    alterable = [*mapping(card.get("box")), *mapping(card.get("actions"))]
    return in_graph(map(str, listed(card.get("context")))), in_graph(alterable), in_graph(map(str, outcomes))


def _graph_in_words(graph: RehearsalGraph) -> Markup:
    """The graph in words: each variable with its parents, and pairs with a hidden common cause."""
    lines = [f"{' and '.join(graph.parents(name))} → {name}" for name in graph.names if graph.parents(name)]
    pairs = [f"{first} ↔ {second}" for first, second in graph.bidirected]
    edges = [*lines, *pairs]
    more = len(edges) - LISTED
    items = bullets([*edges[:LISTED], *([f"and {more} more, in data.yaml"] if more > 0 else [])])
    listing = items or tag("p", "No variable acts on another.")
    return tag("details", tag("summary", "The same graph in words"), listing, open=True)


def _pairs(value: object) -> tuple[tuple[str, str], ...]:
    """Lists of two names as tuples."""
    pairs = [tuple(map(str, listed(pair))) for pair in listed(value)]
    malformed = [pair for pair in pairs if len(pair) != 2]
    if malformed:
        raise ValueError(f"expected edges with two ends; got {malformed[0]}")
    return tuple((first, second) for first, second in pairs)


def limits(report: Material) -> list[tuple[str, str]]:
    """What the task allows and wants, name to words, for the data card."""
    may = "; ".join(settable(report.card, "box") + settable(report.card, "actions"))
    pairs = (("may be set", may), ("desired region", " and ".join(region(report.card))))
    return [(name, words) for name, words in pairs if words]


def cautions(report: Material) -> Markup:
    """All warnings; a sentence where there are none."""
    general, of_cases = warnings_of_run(report), warnings_of_decisions(report.decisions)
    if not general and not of_cases:
        return tag("p", "The run recorded no warnings.")
    head = tag("h3", "Warnings of decisions") if of_cases else None
    return joined([bullets(general), head, grouped(of_cases, len(report.run.decisions), *report.nouns)])


def warnings_of_run(report: Material) -> list[str]:
    """How the run ended, if not well; the warnings of its data card; what is known of its checkpoint."""
    texts = []
    if not report.ended and report.status.get("state") != "ok":
        state, message = report.status.get("state"), report.status.get("message", "")
        texts.append(f"The run did not end well ({state}): {message}" if state else _UNKNOWN)
    texts += [str(report.card["caution"])] if "caution" in report.card else []
    texts += texts_of(report.card)
    texts += [str(text) for text in listed(report.record.get("training_faults"))]
    if report.run.config.get("checkpoint") and report.run.held_out_seen:
        texts.append(f"{no_action_score.SEEN}.")
    return texts


def warnings_of_decisions(decisions: list[Decided]) -> list[tuple[str, str]]:
    """Name of the case and warning, for every warning of every decision."""
    return [(name_of(decision), text) for decision in decisions for text in texts_of(decision)]


def notice(report: Material) -> Markup | None:
    """The box at the top of the page: how many warnings there are; None without any."""
    general, of_cases = warnings_of_run(report), warnings_of_decisions(report.run.decisions)
    if not general and not of_cases:
        return None
    count = len({name for name, _ in of_cases})
    cases = f"{counted(count, 'case')} of {len(report.run.decisions)} with warnings" if of_cases else ""
    data = f"{counted(len(general), 'warning')} of the run and its data" if general else ""
    words = f"{' and '.join(text for text in (data, cases) if text)}: "
    link = tag("a", "read them before acting", href="#warnings")
    return tag("div", tag("p", joined([words, link, "."])), class_="notice")
