"""Linear inequalities as text, read into the faces of a polytope.

    0.6 <= repayment                      at least 0.6
    65 <= map <= 100                      an interval
    sales - 2*cost >= 10 and cost <= 4    several, all of which must hold
    severity <= medium                    of levels with an order, this one and those before it
    severity in {low, medium}             levels that are neighbours; repaid = yes is one
    status in {well, mild}                some of several classes, which have no order

The grammar; a name with blanks or signs, or called `and`, stands in double quotes or backticks:

    region    = relation { "and" relation }
    relation  = sum ("<=" | ">=") sum [ the same sign, sum ]
              | name ("<=" | ">=" | "=") level  |  level ("<=" | ">=") name  |  name "in" "{" level, ... "}"
    sum       = ["+" | "-"] product { ("+" | "-") product }
    product   = factor { ("*" | "/") factor }        at most one factor has a variable; divisors have none
    factor    = number | name | "(" sum ")"

Every relation becomes one face, or two: m'y <= d, with the variables on the left. Strict signs, equalities of
numbers and `or` are refused: a region is closed and convex, with an interior. Errors name the character.

Level number k has the code k, and the bound lies half-way to the next level that is not desired: severity <=
medium of low, medium, high is severity <= 1.5. So a region has an interior, and models that take codes for
numbers cut where rounding would. A number that no level is written like is a code, unless some level of the
variable is written as a number: then only levels can be meant, in whatever order both sides stand. Of classes
without an order one set is desired, by = or in; the variable is then whether it is in the set: status >= 0.5.

Source: Du et al. (2026), Sec. 2.1, for the region; McCullagh (1980), for the cut points of ordered levels.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from rehearsal_torch.files.redaction import beginning
from rehearsal_torch.files.schema import LARGEST

LONGEST, DEEPEST, FACES = 10_000, 20, 1000
TOKEN = re.compile(
    r"""\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    |(?P<sign><=|>=|=<|=>|==|!=|<|>|=|≤|≥|≠)
    |(?P<mark>[-+*/(){},])
    |`(?P<tick>[^`]*)`
    |"(?P<quoted>[^"]*)"
    |(?P<word>[^\W\d][\w.]*))""",
    re.VERBOSE,
)
_PLAIN = re.compile(r"[^\W\d][\w.]*\Z")
SIGNS = {"<=": "<=", ">=": ">=", "≤": "<=", "≥": ">=", "=<": "<=", "=>": ">="}
CLOSED = "a bound belongs to the region; for whole numbers below 3 write <= 2"
EQUAL = (
    "a region has an interior; write an interval, such as 1.5 <= grade <= 2.5, >= 1 for a yes/no outcome, or "
    "of the parts of a mixture [a + b <= 1, a + b >= 1]"
)
OTHERS = {"<": CLOSED, ">": CLOSED, "=": EQUAL, "==": EQUAL, "!=": EQUAL, "≠": EQUAL}
WHAT = "a number, a name or ("
# Words that only small letters make.
HINTS = {
    "and": ": write and in small letters",
    "or": ": a region is convex, so that alternatives are no region; join conditions that all hold by and",
}


class InequalityError(ValueError):
    """A text that is no linear inequality, and the character at which the error is, from 1."""

    def __init__(self, text: str, place: int, words: str) -> None:
        self.place = place
        first = max(place - 21, 0)
        excerpt = text[first : place + 39]
        super().__init__(f"at character {place} of {'...' * (first > 0)}{excerpt!r}: {words}")


@dataclass(frozen=True)
class Linear:
    """A linear form, sum of weights times variables, plus a constant."""

    weights: dict[str, float]
    constant: float

    def plus(self, other: "Linear", sign: float) -> "Linear":
        """The sum of this and `sign` times another."""
        weights = {name: self.weights.get(name, 0.0) + sign * w for name, w in other.weights.items()}
        return Linear({**self.weights, **weights}, self.constant + sign * other.constant)

    def times(self, factor: float) -> "Linear":
        """A multiple."""
        return Linear({name: factor * w for name, w in self.weights.items()}, factor * self.constant)


@dataclass(frozen=True)
class Inequalities:
    """The faces m'y <= d of a region: variables in the order of the text, m over these, and d."""

    names: tuple[str, ...]
    normals: tuple[tuple[float, ...], ...]
    offsets: tuple[float, ...]

    def text(self) -> str:
        """The inequalities as text, which is read back to the same faces."""
        return " and ".join(
            f"{_sum_text(self.names, normal)} <= {offset!r}"
            for normal, offset in zip(self.normals, self.offsets, strict=True)
        )


Levels = Mapping[str, Sequence[str]]
_NONE: Levels = MappingProxyType({})


def inequalities(text: str | Sequence[str], levels: Levels = _NONE, classes: Levels = _NONE) -> Inequalities:
    """Reads one or several texts, all of which must hold. `levels` has the levels of variables in the order
    of their codes 0, 1, ..., `classes` those without order. InequalityError at the first bad character.
    """
    return _parse(text, levels, classes)[0]


def desired_classes(text: str | Sequence[str], levels: Levels, classes: Levels) -> dict[str, tuple[str, ...]]:
    """The variables of classes to the classes of theirs that are desired."""
    return _parse(text, levels, classes)[1]


def _parse(
    text: str | Sequence[str], levels: Levels, classes: Levels
) -> tuple[Inequalities, dict[str, tuple[str, ...]]]:
    lines, desired = [text] if isinstance(text, str) else text, dict[str, tuple[str, ...]]()
    faces = [face for line in lines for face in Reader(line, levels, classes, desired).region()]
    return faces_of(faces), desired


def faces_of(forms: Sequence[Linear]) -> Inequalities:
    """Linear forms that must not be positive, as the faces of a region; InequalityError if there are none."""
    if not forms:
        raise InequalityError("", 1, "expected an inequality, such as 0.6 <= repayment")
    names = tuple(dict.fromkeys(name for form in forms for name in form.weights))
    return Inequalities(
        names,
        tuple(tuple(form.weights.get(name, 0.0) + 0.0 for name in names) for form in forms),
        tuple(0.0 - form.constant for form in forms),
    )


def linear(text: str) -> Linear:
    """Reads one sum, such as current - 3; InequalityError at the first character that cannot be read."""
    reader = Reader(text)
    form = reader.sum()
    reader.end("expected the end")
    return form


def _sum_text(names: Sequence[str], normal: Sequence[float]) -> str:
    terms = [(name, weight) for name, weight in zip(names, normal, strict=True) if weight]
    return " ".join(
        f"{'-' if weight < 0 else '+' if index else ''}{' ' * (index > 0)}{abs(weight)!r}*{_quoted(name)}"
        for index, (name, weight) in enumerate(terms)
    )


def _quoted(name: str) -> str:
    if _PLAIN.match(name) and name not in ("and", "or"):
        return name
    return f'"{name}"' if "`" in name else f"`{name}`"


@dataclass(frozen=True)
class Token:
    """A part of a text: its kind, its value, and the character at which it begins, from 1."""

    kind: str
    value: str
    place: int


class Reader:
    """A parser of inequalities from left to right; `desired` receives the classes that are."""

    def __init__(
        self,
        text: str,
        levels: Levels = _NONE,
        classes: Levels = _NONE,
        desired: dict[str, tuple[str, ...]] | None = None,
    ) -> None:
        self.text, self.at, self.depth = text, 0, 0
        self.levels, self.classes = {**levels, **classes}, classes
        self.desired = {} if desired is None else desired
        if len(text) > LONGEST:
            raise InequalityError(
                beginning(text, 40), 1, f"expected at most {LONGEST} characters; got {len(text)}"
            )
        self.tokens = self._tokens()

    def _tokens(self) -> list[Token]:
        tokens, at, end = list[Token](), 0, len(self.text.rstrip())
        while at < end:
            match = TOKEN.match(self.text, at)
            # Braces and commas are for levels.
            if match is None or (not self.levels and match["mark"] in ("{", "}", ",")):
                at += len(self.text[at:]) - len(self.text[at:].lstrip())
                odd = self.text[at]
                hint = (
                    f"a closing {odd}" if odd in '`"' else "a number, a name, a sign (<=, >=) or + - * / ( )"
                )
                raise InequalityError(self.text, at + 1, f"expected {hint}; got {odd!r}")
            kind = str(match.lastgroup)
            role = "name" if kind in ("tick", "quoted") else kind
            tokens.append(Token(role, match[kind], match.start(kind) + 1 - (kind in ("tick", "quoted"))))
            at = match.end()
        return [*tokens, Token("end", "the end", end + 1)]

    @property
    def next(self) -> Token:
        """The token that comes next."""
        return self.tokens[self.at]

    def error(self, words: str) -> InequalityError:
        """An error at the next token."""
        value = self.next.value if self.next.kind == "end" else repr(self.next.value)
        return InequalityError(self.text, self.next.place, f"{words}; got {value}")

    def take(self, *values: str) -> str | None:
        """The next mark or keyword, if it is one of these."""
        if self.next.kind in ("mark", "word") and self.next.value in values:
            self.at += 1
            return self.tokens[self.at - 1].value
        return None

    def end(self, words: str) -> None:
        """Refuses a further token."""
        if self.next.kind != "end":
            raise self.error(words)

    def region(self) -> list[Linear]:
        """Relations that are joined by `and`; each linear form must not be positive."""
        forms = self.relation()
        while self.take("and") is not None:
            forms += self.relation()
            if len(forms) > FACES:
                raise self.error(f"expected at most {FACES} inequalities")
        if self.next.value == "or" and self.next.kind == "word":
            raise self.error("expected 'and': a region is convex, so that alternatives are no region")
        self.end("expected 'and' or the end")
        return forms

    def _of_numbers(self) -> list[Linear]:
        start = self.next.place
        first_sum, sign = self.sum(), self.sign(None)
        second_sum = self.sum()
        faces = [self.face(first_sum, second_sum, sign, start)]
        if self.next.kind == "sign":
            middle = self.next.place
            second = self.sign(sign)
            faces.append(self.face(second_sum, self.sum(), second, middle))
        if self.next.kind == "sign":
            raise self.error("expected at most two signs in one inequality; join others with 'and'")
        return faces

    def sign(self, before: str | None) -> str:
        """The next sign, <= or >=; the same as `before`."""
        token = self.next
        if token.kind != "sign":
            raise self.error("expected <= or >=")
        if token.value in OTHERS:
            raise InequalityError(
                self.text, token.place, f"expected <= or >=; got {token.value!r}: {OTHERS[token.value]}"
            )
        if before is not None and SIGNS[token.value] != before:
            raise self.error(f"expected {before} again, as in 65 <= map <= 100")
        self.at += 1
        return SIGNS[token.value]

    def face(self, left: Linear, right: Linear, sign: str, place: int) -> Linear:
        """The linear form of a relation."""
        form = left.plus(right, -1.0) if sign == "<=" else right.plus(left, -1.0)
        form = Linear({name: number for name, number in form.weights.items() if number}, form.constant)
        if not form.weights:
            raise InequalityError(self.text, place, "this inequality depends on no variable: leave it out")
        numbers = [*form.weights.values(), form.constant]
        if not all(math.isfinite(number) and abs(number) <= LARGEST for number in numbers):
            raise InequalityError(self.text, place, f"expected numbers up to {LARGEST:g}: use another unit")
        if small := [name for name, number in form.weights.items() if abs(number) < 1 / LARGEST]:
            words = f"expected weights of at least {1 / LARGEST:g} in size; that of {small[0]!r} is smaller"
            raise InequalityError(self.text, place, f"{words}: use another unit")
        return form

    def sum(self) -> Linear:
        """A sum of products."""
        sign = self.take("+", "-")
        total = self.product().times(-1.0 if sign == "-" else 1.0)
        while (sign := self.take("+", "-")) is not None:
            total = total.plus(self.product(), -1.0 if sign == "-" else 1.0)
        return total

    def product(self) -> Linear:
        """A product of factors, at most one of which has a variable."""
        total = self.factor()
        while (mark := self.take("*", "/")) is not None:
            position, factor = self.next.place, self.factor()
            if mark == "/" and (factor.weights or not factor.constant):
                raise InequalityError(self.text, position, "expected a number other than 0 to divide by")
            if total.weights and factor.weights:
                raise InequalityError(
                    self.text,
                    position,
                    "a product of two variables is not linear: add it as a column of the table",
                )
            if factor.weights:
                total = factor.times(total.constant)
            else:
                total = total.times(1.0 / factor.constant if mark == "/" else factor.constant)
        if self.next.kind in ("word", "name", "number") and self.next.value not in ("and", "or"):
            raise InequalityError(
                self.text,
                self.next.place,
                "expected a sign between two values, such as 2*cost; got "
                f"{self.next.value!r}{HINTS.get(self.next.value.lower()) or self._name_hint()}",
            )
        return total

    def _name_hint(self) -> str:
        """What to do if two words in a row are one name: in YAML, what begins with a quote ends with it."""
        words = [token.value for token in self.tokens[self.at - 1 : self.at + 1] if token.kind == "word"]
        if not words[1:]:
            return ""
        name = " ".join(words)
        whole = beginning(self.text.replace(name, f'"{name}"', 1), 120)
        return f": if it has a blank, put the name in double quotes, and all of it in single ones, '{whole}'"

    def factor(self) -> Linear:
        """A number, a name, or a sum in brackets."""
        token = self.next
        if token.kind == "number":
            self.at += 1
            if not float(token.value) <= LARGEST:
                raise InequalityError(self.text, token.place, f"expected numbers up to {LARGEST:g}")
            return Linear({}, float(token.value))
        if token.kind == "name" or (token.kind == "word" and token.value not in ("and", "or")):
            if not token.value.strip():
                raise InequalityError(self.text, token.place, "expected a name between the quotes")
            self.at += 1
            return Linear({token.value: 1.0}, 0.0)
        if self.take("(") is not None:
            self.depth += 1
            if self.depth > DEEPEST:
                raise self.error(f"expected at most {DEEPEST} levels of brackets")
            inner = self.sum()
            if self.take(")") is None:
                raise self.error("expected )")
            self.depth -= 1
            return inner
        raise self.error(f"expected {WHAT}")

    def relation(self) -> list[Linear]:
        """One relation, with one sign or two."""
        first, second = self.next, self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        compared = second.kind == "sign" or (second.kind == "word" and second.value == "in")
        if compared and first.kind in ("word", "name") and first.value in self.levels:
            return self._of_level(first.value)
        if second.kind == "sign":
            third = self.tokens[self.at + 2]
            if third.kind in ("word", "name") and third.value in self.levels:
                return self._level_first(third.value)
        for token in self.tokens[self.at :]:
            if token.kind == "word" and token.value == "and":
                break
            unordered = token.value in self.classes
            if token.kind in ("word", "name") and (unordered or self._has_numeric_levels(token.value)):
                self.at = self.tokens.index(token)
                raise self.error(
                    self._unordered(token.value)
                    if unordered
                    else f"levels of {token.value} are written as numbers: compare it with one of "
                    f"{', '.join(self.levels[token.value])} alone, and join others with 'and'"
                )
        return self._of_numbers()

    def _of_level(self, name: str) -> list[Linear]:
        """A variable that is compared with a level, or with a number, its code."""
        levels, token = self.levels[name], self.tokens[self.at + 1]
        if name in self.classes:
            return self._of_classes(name, token)
        third = self.tokens[self.at + 2]
        if third.kind == "number" and self._text(third) not in levels and not self._has_numeric_levels(name):
            return self._of_numbers()
        self.at += 2
        if token.value == "in":
            return self._faces(name, self._neighbours(name))
        if token.value in ("=", "=="):
            return self._faces(name, [self._level(name)])
        if token.value not in SIGNS:
            self.at -= 1
            raise self.error(f"expected <=, >=, = or in, and one of {', '.join(levels)}")
        code = self._level(name)
        return self._faces(name, range(code + 1) if SIGNS[token.value] == "<=" else range(code, len(levels)))

    def _of_classes(self, name: str, sign: Token) -> list[Linear]:
        """A variable of classes that is desired to be of one of some."""
        if name in self.desired:
            raise self.error(f"{name} is named before: join its classes in one set, {name} in {{...}}")
        if sign.value not in ("=", "==", "in"):
            self.at += 1
            raise self.error(self._unordered(name))
        self.at += 2
        codes = self._codes(name) if sign.value == "in" else [self._level(name)]
        if len(codes) == len(self.classes[name]):
            raise self.error(f"every class of {name} is desired then: leave it out")
        self.desired[name] = tuple(self.classes[name][code] for code in codes)
        return [Linear({name: -1.0}, 0.5)]

    def _unordered(self, name: str) -> str:
        classes = list(self.classes[name])
        examples = ", ".join(classes[: max(1, min(2, len(classes) - 1))])
        return f"classes of {name} have no order: name those that are desired, {name} in {{{examples}}}"

    def _level_first(self, name: str) -> list[Linear]:
        if name in self.classes:
            raise self.error(f"expected the variable first: {self._unordered(name)}")
        is_level = self.next.kind in ("word", "name") and self.next.value in self.levels[name]
        if not is_level and not self._has_numeric_levels(name):
            return self._of_numbers()
        code = self._level(name)
        sign = self.sign(None)
        self.at += 1
        if self.next.kind == "sign":
            raise self.error("expected one sign beside a level; join others with 'and'")
        return self._faces(name, range(code, len(self.levels[name])) if sign == "<=" else range(code + 1))

    def _level(self, name: str) -> int:
        """The code of the level that comes next."""
        levels, token = list(self.levels[name]), self.next
        if token.kind not in ("word", "name", "number") or self._text(token) not in levels:
            raise self.error(f"expected one of {', '.join(levels)}, in quotes if it has blanks or signs")
        self.at += 1
        return levels.index(self._text(token))

    def _has_numeric_levels(self, name: str) -> bool:
        return any(_number(level) is not None for level in self.levels.get(name, ()))

    @staticmethod
    def _text(token: Token) -> str:
        """A token as a level is written: 2.0 is 2."""
        value = _number(token.value) if token.kind == "number" else None
        return token.value if value is None else f"{value:.15g}"

    def _codes(self, name: str) -> list[int]:
        """The codes of the levels in braces, in ascending order."""
        if self.take("{") is None:
            raise self.error("expected { after in, and levels with commas")
        codes = [self._level(name)]
        while self.take(",") is not None:
            codes.append(self._level(name))
        if self.take("}") is None:
            raise self.error("expected , or }")
        return sorted(set(codes))

    def _neighbours(self, name: str) -> list[int]:
        start, codes = self.at, self._codes(name)
        if len(codes) <= codes[-1] - codes[0]:
            raise InequalityError(
                self.text,
                self.tokens[start + 1].place,
                f"expected levels that are neighbours in the order {', '.join(self.levels[name])}: a region "
                "is convex, so that levels with others between them are no region",
            )
        return codes

    def _faces(self, name: str, codes: Sequence[int]) -> list[Linear]:
        """The faces of some neighbouring levels; a level at the end of the scale has no bound there."""
        low, high = codes[0], codes[-1]
        above = [Linear({name: 1.0}, -(high + 0.5))] if high < len(self.levels[name]) - 1 else []
        below = [Linear({name: -1.0}, low - 0.5)] if low > 0 else []
        if not above + below:
            raise self.error(f"every level of {name} is desired then: leave it out")
        return above + below


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
