"""What people, programs and disks make of plain data, tables and bytes, as strategies of Hypothesis."""

import gzip
import json
import math

from hypothesis import strategies as st

from tests.toys.mutated import holder_of, places

NUMBERS = [
    0, -0.0, 1, -1, 2, 0.5, 1e-320, 1e-300, 1e149, 1e155, 1e308, -1e308, 10**19, 10**400, math.nan, math.inf,
    -math.inf,
]  # fmt: skip
TEXTS = [
    "", " ", "a", "x" * 300, "nan", "inf", "-inf", "null", "true", "no", "1e3", "0,5", "1.5", "0x10",
    "1_000", "a\nb", "a\tb", "\0", "a\0b", "\ufeff",
    "\u202ea", "set:X", "Größe",
    "体温", "🙂", "../../etc/passwd", "/dev/null", "C:\\temp", "a b", "a[0]", "[a]", "{a}", "{}",
    "{a: 1}", "%s", "%(a)s", "${a}", "${oc.env:HOME}",
    "a,b", 'a"b', "a'b", "a=b", "a;b", "# a", "- a", "*a", "&a", "!!python/object:os.x", "action[0]",
    "__class__", "_target_", "self", "-", "~", "a->b",
]  # fmt: skip
# Names that a variable may bear in someone's file.
NAMES = [text for text in TEXTS if text.strip() and text.isprintable() and len(text) < 100]
OTHERS = [
    None, True, False, [], [[]], {}, [None], {"a": None}, [["a", "b"]], {"a": ["b"]}, [1, 2],
    {"normals": [[1]], "offsets": [1]},
]  # fmt: skip
BYTES = [
    b"\0", b"\0" * 40, b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\n", b"\r", b'"', b"'", b",", b";",
    b"{", b"[" * 3000, b"&a *a", b"\x1f\x8b", b"nan", b"-",
]  # fmt: skip
# Cells of a table, and columns that are the same everywhere.
CELLS = [
    "1e7", "-1e15", "1e149", "-1e149", "1e155", "1e-320", "0", "-0.0", " 3 ", "+7", "1e308", "0.1", "",
    "nan", "hot", "12345678901234567890", "inf", "2020-01-01",
]  # fmt: skip
ODD = st.one_of(*map(st.sampled_from, (NUMBERS, TEXTS, OTHERS)))


def copied(plain):
    """A copy that shares nothing, of plain data that may hold numbers JSON lacks."""
    return json.loads(json.dumps(plain))


@st.composite
def changed(draw, plain, least=1, most=3):
    """A copy of plain data that is changed in a few places."""
    made = copied(plain)
    for _ in range(draw(st.integers(least, most))):
        paths = list(places(made))
        if not paths:
            break
        holder, key = holder_of(made, draw(st.sampled_from(paths)))
        change = draw(
            st.sampled_from(["value", "value", "value", "odd", "gone", "twice", "name", "swap", "order"])
        )
        if change == "gone":
            del holder[key]
        elif change == "twice" and isinstance(holder, list):
            holder.insert(0, copied(holder[key]))
        elif change == "twice":
            holder[draw(st.sampled_from([f"{key}x", str(key).upper(), f"{key} "]))] = copied(holder[key])
        elif change == "name" and isinstance(holder, dict):
            holder[draw(st.sampled_from([f"{key}x", str(key)[1:], *TEXTS]))] = holder.pop(key)
        elif change == "swap":
            other, last = holder_of(made, draw(st.sampled_from(paths)))
            holder[key], other[last] = copied(other[last]), copied(holder[key])
        elif change == "order" and isinstance(holder[key], list):
            holder[key] = draw(st.permutations(holder[key]))
        elif change == "order" and isinstance(holder[key], dict):
            values = draw(st.permutations(list(holder[key].values())))
            holder[key] = dict(zip(holder[key], values, strict=True))
        else:
            holder[key] = draw(ODD if change == "odd" else near(holder[key]))
    return made


def near(value):
    """What somebody types in the place of a value: another of its kind, or the same in another form."""
    made = [value, [value], {"a": value}, str(value)]
    if isinstance(value, bool) or value is None:
        made += [not value, *NUMBERS]
    elif isinstance(value, int | float):
        made += [-value, value - 1, value + 1, 0.0, *NUMBERS]
        if abs(value) < 1e300:
            made += [value * factor for factor in (3, 1e6, 1e12, 1e-9, 1e-12)]
            made += [float(value), value + 1e-9, value + 1.6e9]
    elif isinstance(value, str):
        made += [
            value.upper(),
            f"{value} ",
            value[1:],
            value * 40,
            f"${{{value}}}",
            f"{value}\n",
            list(value),
        ]
    elif isinstance(value, list):
        made += [value[::-1], value[:-1], value * 2, value * (3000 if len(value) < 50 else 1), *value]
    elif isinstance(value, dict):
        made += [list(value), list(value.values()), *value.values()]
    return st.sampled_from(made)


def renamed(plain, names):
    """The same with other words for some, wherever they stand."""
    if isinstance(plain, dict):
        return {names.get(key, key): renamed(value, names) for key, value in plain.items()}
    if isinstance(plain, list):
        return [renamed(value, names) for value in plain]
    return names.get(plain, plain) if isinstance(plain, str) else plain


@st.composite
def damaged(draw, content, most=2):
    """Bytes as a disk, a transfer or another program leaves them."""
    for _ in range(draw(st.integers(1, most))):
        first, last = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
        lines, words = content.splitlines(keepends=True), content.split()
        change = draw(st.sampled_from(DAMAGES))
        if change == "cut":
            content = content[:first]
        elif change == "flip" and content:
            place = min(first, len(content) - 1)
            content = (
                content[:place]
                + bytes([content[place] ^ 1 << draw(st.integers(0, 7))])
                + content[place + 1 :]
            )
        elif change == "insert":
            content = content[:first] + draw(st.sampled_from(BYTES)) + content[first:]
        elif change == "blank":
            content = content[:first] + b"\0" * (last - first) + content[last:]
        elif change == "out":
            content = content[:first] + content[first + draw(st.sampled_from([1, 2, 30, 300])) :]
        elif change == "line" and lines:
            place, other = draw(st.tuples(*[st.integers(0, len(lines) - 1)] * 2))
            found = draw(st.sampled_from([[], [lines[other]] * 2, [lines[other]] * 300, [lines[place][:-2]]]))
            content = b"".join([*lines[:place], *found, *lines[place + 1 :]])
        elif change == "ends":
            content = content.replace(
                b"\n", draw(st.sampled_from([b"\r\n", b"\r", b"\n\n", b"", "\u2028".encode()]))
            )
        elif change == "encoding":
            encoding = draw(
                st.sampled_from(["utf-16", "utf-16-le", "utf-8-sig", "utf-32", "latin-1", "cp1252"])
            )
            content = content.decode("utf-8", "replace").encode(encoding, "replace")
        elif change == "word" and words:
            told = draw(st.one_of(st.sampled_from(words), st.sampled_from(BYTES), ODD.map(str)))
            told = told if isinstance(told, bytes) else told.encode("utf-8", "replace")
            content = content.replace(draw(st.sampled_from(words)), told, draw(st.sampled_from([1, -1])))
        else:
            content = draw(
                st.sampled_from([gzip.compress(content, mtime=0), content * 2, content[::-1], b""])
            )
    return content


DAMAGES = [
    "cut", "flip", "insert", "insert", "blank", "out", "line", "line", "ends", "encoding", "word", "word",
    "pack",
]  # fmt: skip


@st.composite
def rows_changed(draw, rows, least=1):
    """A table, a list of lists of texts with the header first, that is changed in a few places; it stays a
    table, more or less."""
    rows = [list(row) for row in rows]
    for _ in range(draw(st.integers(least, 3))):
        row = draw(st.integers(0, len(rows) - 1))
        column = draw(st.integers(0, max(len(rows[0]) - 1, 0)))
        change = draw(st.sampled_from(ROWS))
        if change == "cell":
            rows[row][column : column + 1] = [draw(st.one_of(st.sampled_from(CELLS), ODD.map(str)))]
        elif change == "column":
            cell = draw(st.sampled_from(CELLS))
            _each(rows, column, lambda _, cell=cell: cell)
        elif change == "scale":
            factor = draw(st.sampled_from([1e-300, 1e-12, 1e12, 1e148, -1.0, 1.0, 0.0]))
            offset = draw(st.sampled_from([0.0, 0.0, 1e7, 1.6e9, -1e15, 1e149]))
            _each(rows, column, lambda cell, by=factor, off=offset: repr(float(cell) * by + off))
        elif change == "round":
            _each(rows, column, lambda cell: str(round(float(cell))))
        elif change == "copy":
            other = draw(st.integers(0, max(len(rows[0]) - 1, 0)))
            for cells in rows[1:]:
                cells[column : column + 1] = cells[other : other + 1]
        elif change == "narrower":
            for cells in rows:
                del cells[column : column + 1]
        elif change == "wider":
            for cells in rows:
                cells[column:column] = cells[column : column + 1]
        elif change == "header" and rows[0]:
            name = draw(st.sampled_from([*TEXTS, *rows[0], f" {rows[0][column]} ", rows[0][column].upper()]))
            rows[0][column] = name
        elif change == "fewer":
            del rows[draw(st.sampled_from([0, 1, 2, 5, 11, len(rows) // 2])) :]
        elif change == "more":
            rows += rows[1:] * draw(st.sampled_from([1, 3]))
        elif change == "same":
            rows[1:] = [list(rows[-1]) for _ in rows[1:]]
        elif change == "ragged":
            rows[row] = draw(st.sampled_from([[], rows[row][1:], [*rows[row], "7"], rows[row][::-1]]))
        else:
            for cells in rows[1:]:
                cells[:] = [f'"{cell.replace(".", ",")}"' for cell in cells]
        rows = rows or [[""]]
        rows[0] = rows[0] or [""]
    return rows


ROWS = [
    "cell", "cell", "column", "scale", "scale", "round", "copy", "narrower", "wider", "header", "header",
    "fewer", "more", "same", "ragged", "decimal",
]  # fmt: skip


def _each(rows, column, work):
    """Puts something in the place of each cell of a column that it can be made of."""
    for cells in rows[1:]:
        try:
            cells[column] = work(cells[column])
        except (ValueError, IndexError, OverflowError):
            continue


def text_of(rows, separator=","):
    return "\n".join(separator.join(row) for row in rows) + "\n"
