"""The tables of the page of keys: every key of a problem file, by question, from the JSON schema.

python docs/keys.py >> keys.md
"""

import re
import sys
from collections.abc import Iterator
from typing import Any

from rehearsal_torch.problems.json_schema import FORMS

# The public names, by what they are for.
API = {
    "Decide": "rehearse learn RehearsalModel Decisions WhatIf Comparison Explanation",
    "Look back": "learn_episodes EpisodeModel look_back LookedBack",
    "Experiment": "CausalOptimiser Trial sample recover counterfactual",
    "Keep": "load save card",
    "What is asked and answered": "RehearsalTask CausalTask Table Episode RehearsalCase EpisodeCase Decision "
    "Alteration Estimate Finding Box Polytope RehearsalGraph c_separated pac_bound",
    "Build": "Problem World Mechanism Surrogate Objective Search fit "
    "rounds transitions lightning_parts TrainingModule TrainingData",
}


def kind_of(schema: dict[str, Any]) -> str:
    """What a value is, in a few words."""
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{str(schema['const']).lower()}`"
    if "anyOf" in schema or "oneOf" in schema:
        kinds = [kind_of(each) for each in schema.get("anyOf") or schema["oneOf"]]
        return " or ".join(dict.fromkeys(kind for kind in kinds if kind != "null"))
    if "$ref" in schema:
        return "mapping"
    kind = schema.get("type", "any")
    if kind == "array" and isinstance(schema.get("items"), dict):
        return f"list of {kind_of(schema['items'])}"
    return {"object": "mapping", "array": "list"}.get(kind, kind)


def referred(schema: Any, definitions: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The records that a schema refers to, at any depth but within other records."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield definitions[schema["$ref"].rpartition("/")[2]]
        for each in schema.values():
            yield from referred(each, definitions)
    elif isinstance(schema, list):
        for each in schema:
            yield from referred(each, definitions)


def keys_of(
    schema: dict[str, Any], definitions: dict[str, Any], above: str = ""
) -> Iterator[tuple[str, dict]]:
    """Every key with its schema, dotted below the key that holds it."""
    for name, part in schema.get("properties", {}).items():
        yield above + name, part
        for record in referred(part, definitions):
            below = f"{name}.NAME" if name == "variables" else name
            yield from keys_of(record, definitions, f"{above}{below}.")


def table(question: str) -> str:
    """The table of one question."""
    schema = FORMS[question].model_json_schema()
    rows = dict[str, str]()
    for name, part in keys_of(schema, schema.get("$defs", {})):
        needed = " (needed)" if name in schema.get("required", ()) else ""
        words = re.sub(r"\s+", " ", part.get("description", ""))
        # Braces of text would be read as attributes of the page.
        words = re.sub(r"\{(?:[^{}]|\{[^{}]*\})*\}", r"`\g<0>`", words)
        cells = (
            " ".join(f"`{each}`" for each in re.findall(r".*\.|[^.]+$", name)),
            kind_of(part) + needed,
            words,
        )
        rows.setdefault(name, "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(
        [f"## `{question}`", "", "| key | type | meaning |", "|---|---|---|", *rows.values(), ""]
    )


def names() -> str:
    """The public names, each a line that mkdocstrings replaces by its docstring."""
    blocks = (
        "\n".join([f"## {group}", "", *(f"::: rehearsal_torch.{name}" for name in public.split()), ""])
        for group, public in API.items()
    )
    return "\n".join(blocks)


if __name__ == "__main__":
    print("\n" + (names() if sys.argv[1] == "api" else "\n".join(table(question) for question in FORMS)))
