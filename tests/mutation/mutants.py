"""Mutants of a module: its source with one small fault, of the kinds that people make.

    <  becomes <=      and the reverse; > and >=, == and !=, in and not in, is and is not likewise
    and  becomes or    and the reverse; `not x` becomes x
    True  becomes False, and the reverse; a whole number n becomes n + 1
    + becomes -        and the reverse; * becomes /, and the reverse
    return x  becomes  return None
    raise ...  becomes  pass

Docstrings, annotations, imports and blocks for type checkers stay as they are, and so do `strict=` of zip and
`frozen=` of a data class, which change no result of code that is right. Each mutant has one change.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
# Keywords whose values guard against mistakes of programmers.
GUARDS = ("strict", "frozen")
COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}


@dataclass(frozen=True)
class Mutant:
    """One changed source.

    Attributes:
        line: The line of the change in the original.
        before: The changed piece.
        after: What it became.
        tree: The whole changed module.
    """

    line: int
    before: str
    after: str
    tree: ast.Module


def mutants(source: str) -> list[Mutant]:
    """All mutants of a module, in the order of their lines."""
    tree, found = ast.parse(source), []
    for place, node in enumerate(ast.walk(tree)):
        node.place = place
    for node in _in_code(tree):
        for changed in _changes(node):
            whole = copy.deepcopy(tree)
            swapped = _Swap(node.place, changed).visit(whole)
            ast.fix_missing_locations(swapped)
            found.append(Mutant(node.lineno, _text(node), _text(changed), swapped))
    return sorted(found, key=lambda each: (each.line, each.before, each.after))


def _in_code(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below that are executed when the module is used, or imported."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "keywords") and isinstance(node, ast.ClassDef | ast.arg):
            continue
        if field in ("annotation", "returns", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.Import | ast.ImportFrom):
                continue
            text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            typing = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
            guard = isinstance(child, ast.keyword) and child.arg in GUARDS
            if text or typing or guard:
                continue
            yield child
            yield from _in_code(child)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """What a node may become."""
    if isinstance(node, ast.Compare):
        for number, each in enumerate(node.ops):
            if type(each) in COMPARED:
                changed = copy.deepcopy(node)
                changed.ops[number] = COMPARED[type(each)]()
                yield changed
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield ast.copy_location(ast.BoolOp(other, copy.deepcopy(node.values)), node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield copy.deepcopy(node.operand)
    elif isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
        texts = [each for each in (node.left, node.right) if _is_text(each)]
        if not texts:
            changed = copy.deepcopy(node)
            changed.op = COMPUTED[type(node.op)]()
            yield changed
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.copy_location(ast.Constant(not node.value), node)
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.copy_location(ast.Constant(node.value + 1), node)
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield ast.copy_location(ast.Return(ast.Constant(None)), node)
    elif isinstance(node, ast.Raise):
        yield ast.copy_location(ast.Pass(), node)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


class _Swap(ast.NodeTransformer):
    """Puts a node in the place of another."""

    def __init__(self, place: int, node: ast.AST) -> None:
        self.place, self.node = place, node

    def visit(self, node: ast.AST) -> ast.AST:
        if getattr(node, "place", None) == self.place:
            return ast.copy_location(self.node, node)
        return self.generic_visit(node)


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())
