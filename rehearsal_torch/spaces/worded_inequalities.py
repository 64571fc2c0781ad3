"""Inequalities of variables that have texts, the levels of a scale.

    repaid = yes                          the level itself
    severity <= medium                    this level and those before it
    severity in {low, medium}             levels that are neighbours
    status in {well, mild}                some of several classes, which have no order

In the grammar of `spaces.inequalities` there is one more relation,

    relation  = name ("<=" | ">=" | "=") level  |  level ("<=" | ">=") name  |  name "in" "{" level, ... "}"

Level number k has the code k, and the bound lies half-way to the next level that is not desired: severity <=
medium of low, medium, high is severity <= 1.5. So a region has an interior, and models that take codes for
numbers cut where rounding would. A number that no level is written like is a code, unless some level of the
variable is written as a number: then only levels can be meant, in whatever order both sides stand.

Of classes without an order one set is desired, by = or in; the variable is then whether its class is one of
them, 0 or 1, and the face is status >= 0.5.

Source: McCullagh (1980), for the cut points of ordered levels.
"""

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rehearsal_torch.spaces.inequalities import (
    SIGNS,
    TOKEN,
    Inequalities,
    InequalityError,
    Linear,
    Reader,
    Token,
    faces_of,
)

Levels = Mapping[str, Sequence[str]]


def worded_inequalities(
    text: str | Sequence[str], levels: Levels, classes: Levels = MappingProxyType({})
) -> Inequalities:
    """Reads inequalities, in which some variables are compared with texts: variable to its levels, in the
    order of their codes 0, 1, ..., or to its classes, which have no order.

    Raises:
        InequalityError: at the first character that cannot be read.
    """
    return _read(text, levels, classes)[0]


def desired_classes(text: str | Sequence[str], levels: Levels, classes: Levels) -> dict[str, tuple[str, ...]]:
    """The variables of classes to the classes of theirs that are desired; see `worded_inequalities`."""
    return _read(text, levels, classes)[1]


def _read(
    text: str | Sequence[str], levels: Levels, classes: Levels
) -> tuple[Inequalities, dict[str, tuple[str, ...]]]:
    lines, desired = [text] if isinstance(text, str) else text, dict[str, tuple[str, ...]]()
    faces = [face for line in lines for face in _Reader(line, levels, classes, desired).region()]
    return faces_of(faces), desired


class _Reader(Reader):
    pattern = re.compile(TOKEN.pattern.replace("[-+*/()]", "[-+*/(){},]"), TOKEN.flags)

    def __init__(self, text: str, levels: Levels, classes: Levels, found: dict[str, tuple[str, ...]]) -> None:
        super().__init__(text)
        self.levels, self.classes, self.found = {**levels, **classes}, classes, found

    def relation(self) -> list[Linear]:
        first, second = self.next, self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        compared = second.kind == "sign" or (second.kind == "word" and second.value == "in")
        if compared and first.kind in ("word", "name") and first.value in self.levels:
            return self._of(first.value)
        if second.kind == "sign":
            third = self.tokens[self.at + 2]
            if third.kind in ("word", "name") and third.value in self.levels:
                return self._turned(third.value)
        for token in self.tokens[self.at :]:
            if token.kind == "word" and token.value == "and":
                break
            if token.kind in ("word", "name") and token.value in self.classes:
                self.at = self.tokens.index(token)
                raise self.error(self._unordered(token.value))
            if token.kind in ("word", "name") and self._counted(token.value):
                self.at = self.tokens.index(token)
                raise self.error(
                    f"levels of {token.value} are written as numbers: {self._expected(token.value)}"
                )
        return super().relation()

    def _of(self, name: str) -> list[Linear]:
        """A variable that is compared with a level, or with a number, its code."""
        known, token = self.levels[name], self.tokens[self.at + 1]
        if name in self.classes:
            return self._of_classes(name, token)
        value = self.tokens[self.at + 2]
        if value.kind == "number" and self._text(value) not in known and not self._counted(name):
            return super().relation()
        self.at += 2
        if token.value == "in":
            return self._faces(name, self._several(name))
        if token.value in ("=", "=="):
            return self._faces(name, [self._level(name)])
        if token.value not in SIGNS:
            self.at -= 1
            raise self.error(f"expected <=, >=, = or in, and one of {', '.join(known)}")
        code = self._level(name)
        return self._faces(name, range(code + 1) if SIGNS[token.value] == "<=" else range(code, len(known)))

    def _of_classes(self, name: str, sign: Token) -> list[Linear]:
        """A variable of classes that is desired to be of one of some."""
        if name in self.found:
            raise self.error(f"{name} is named before: join its classes in one set, {name} in {{...}}")
        if sign.value not in ("=", "==", "in"):
            self.at += 1
            raise self.error(self._unordered(name))
        self.at += 2
        codes = self._places(name) if sign.value == "in" else [self._level(name)]
        if len(codes) == len(self.classes[name]):
            raise self.error(f"every class of {name} is desired then: leave it out")
        self.found[name] = tuple(self.classes[name][code] for code in codes)
        return [Linear({name: -1.0}, 0.5)]

    def _unordered(self, name: str) -> str:
        known = list(self.classes[name])
        examples = ", ".join(known[: max(1, min(2, len(known) - 1))])
        return f"classes of {name} have no order: name those that are desired, {name} in {{{examples}}}"

    def _turned(self, name: str) -> list[Linear]:
        """A level that stands before its variable."""
        if name in self.classes:
            raise self.error(f"expected the variable first: {self._unordered(name)}")
        stated = self.next.kind in ("word", "name") and self.next.value in self.levels[name]
        if not stated and not self._counted(name):
            return super().relation()
        code = self._level(name)
        sign = self.sign(None)
        self.at += 1
        if self.next.kind == "sign":
            raise self.error("expected one sign beside a level; join others with 'and'")
        return self._faces(name, range(code, len(self.levels[name])) if sign == "<=" else range(code + 1))

    def _level(self, name: str) -> int:
        """The place of the level that comes next."""
        known, token = list(self.levels[name]), self.next
        if token.kind not in ("word", "name", "number") or self._text(token) not in known:
            raise self.error(f"expected one of {', '.join(known)}, in quotes if it has blanks or signs")
        self.at += 1
        return known.index(self._text(token))

    def _counted(self, name: str) -> bool:
        """Whether some level of a variable is written as a number."""
        return any(_number(level) is not None for level in self.levels.get(name, ()))

    def _expected(self, name: str) -> str:
        return f"compare it with one of {', '.join(self.levels[name])} alone, and join others with 'and'"

    @staticmethod
    def _text(token: Token) -> str:
        """A token as a level is written: 2.0 is 2."""
        value = _number(token.value) if token.kind == "number" else None
        return token.value if value is None else f"{value:.15g}"

    def _places(self, name: str) -> list[int]:
        """The places of the levels in braces, in ascending order."""
        if self.take("{") is None:
            raise self.error("expected { after in, and levels with commas")
        places = [self._level(name)]
        while self.take(",") is not None:
            places.append(self._level(name))
        if self.take("}") is None:
            raise self.error("expected , or }")
        return sorted(set(places))

    def _several(self, name: str) -> list[int]:
        brace, places = self.at, self._places(name)
        if places != list(range(places[0], places[-1] + 1)):
            raise InequalityError(
                self.text,
                self.tokens[brace + 1].place,
                f"expected levels that are neighbours in the order {', '.join(self.levels[name])}: a region "
                "is convex, so that levels with others between them are no region",
            )
        return places

    def _faces(self, name: str, places: Sequence[int]) -> list[Linear]:
        """The faces of some neighbouring levels; a level at the end of the scale has no bound there."""
        low, high = places[0], places[-1]
        forms = [] if high == len(self.levels[name]) - 1 else [Linear({name: 1.0}, -(high + 0.5))]
        forms += [] if low == 0 else [Linear({name: -1.0}, low - 0.5)]
        if not forms:
            raise self.error(f"every level of {name} is desired then: leave it out")
        return forms


def _number(text: str) -> float | None:
    """A text as a finite number; None if it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
