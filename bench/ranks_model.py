"""Fits what ranks take to the forms that the code has, by least squares, and
tells how far the fit is from each figure and what it says of more ranks.

Reads lines of bench/ranks: where, step, messages, mean, host, peak, shared,
mapped, files, ranks. Writes Markdown. Where the forms come from, and what is
assumed, is in docs/ranks.md.
"""

import math
import sys

FITTED = (1, 2, 4, 8, 16, 32)
CHECKED = 64  # measured as well, but not fitted
MORE = (64, 128, 256, 512, 1024)
ON_A_MACHINE = 256  # ranks that share memory, at most
STEPS = ("communicator", "table", "first gather", "gather", "first fetch")
COLUMNS = ("messages", "mean", "host", "peak", "shared", "mapped", "files")

STEP = 4  # by which the blocks of an allgather grow
ON_A_HEADER = 296  # bytes that need no messages of their own
GATHERED = 4096  # rows of a gather
ROWS_OF_ASK = 251  # of 256 bytes, as many as a slot has room for


def blocks(ranks):
    """How many blocks are in each message of a rank in an allgather: of 1, 4, 16
    ... ranks, to up to three partners, or what is left."""
    have = 1
    while have < ranks:
        for i in range(1, STEP):
            if i * have < ranks:
                yield min(have, ranks - i * have)
        have *= STEP


def allgather(ranks):
    """Messages of a rank in an allgather, in the mean. Blocks that go around the
    end of the ranks are two messages."""
    return sum(1 + (count - 1) / ranks for count in blocks(ranks))


def allgather_most(ranks):
    """The same of the rank that sends most."""
    return sum(2 if count > 1 else 1 for count in blocks(ranks))


def partition(ranks):
    """Messages of a broadcast of the partition, in the mean, where it is too
    large for what all exchange before."""
    return (ranks - 1) / ranks if 8 * (ranks + 1) > ON_A_HEADER else 0.0


def asks(ranks):
    """Asks of a rank for GATHERED rows, each as likely of any owner."""
    if ranks == 1:
        return 0.0
    chance = 1 / ranks
    mean = 0.0
    for rows in range(1, GATHERED + 1):
        log = (
            math.lgamma(GATHERED + 1)
            - math.lgamma(rows + 1)
            - math.lgamma(GATHERED - rows + 1)
            + rows * math.log(chance)
            + (GATHERED - rows) * math.log1p(-chance)
        )
        mean += math.ceil(rows / ROWS_OF_ASK) * math.exp(log)
    return (ranks - 1) * mean


def one(_ranks):
    return 1.0


def itself(ranks):
    return float(ranks)


def others(ranks):
    return float(ranks - 1)


def area(ranks):
    """KiB of the memory through which ranks of a machine do collectives: pages
    with a line for each rank, and two slots each, together at most 8 MiB."""
    front = 4 * math.ceil((192 + 64 * ranks) / 4096)
    slot = 256 if ranks > 1 else 4
    while 2 * slot * ranks > 8192 and slot > 4:
        slot //= 2
    return front + 2.0 * slot * ranks


def area_share(ranks):
    return area(ranks) / ranks


NAMES = {
    one: "1",
    itself: "n",
    others: "(n - 1)",
    asks: "asks",
    allgather: "g",
    allgather_most: "G",
    partition: "p",
    area: "area",
    area_share: "area / n",
}
LINE = (one, itself)

# Of a gather: asks, lists and rows; that a rank will ask, and that it asks no
# more.
GATHER = ((asks, 3), (others, 2), allgather)

# Where, step, column, form: parts whose factors are fitted, or (part, factor)
# where the code gives it.
FORMS = (
    ("apart", "communicator", "messages", (allgather_most,)),
    ("apart", "communicator", "mean", (allgather,)),
    ("apart", "table", "messages", (allgather_most,)),
    ("apart", "table", "mean", (allgather, (partition, 1))),
    ("apart", "gather", "mean", GATHER),
    ("apart", "first gather", "mean", GATHER),
    ("apart", "communicator", "host", LINE),
    ("apart", "communicator", "peak", LINE),
    ("apart", "table", "host", LINE),
    ("apart", "first gather", "host", LINE),
    ("apart", "first fetch", "host", LINE),
    ("apart", "first gather", "shared", (one,)),
    ("apart", "gather", "files", LINE),
    ("one", "communicator", "host", LINE),
    ("one", "table", "host", LINE),
    ("one", "first gather", "host", LINE),
    ("one", "first fetch", "host", LINE),
    ("one", "communicator", "shared", (area_share,)),
    ("one", "communicator", "mapped", (area,)),
    ("one", "first gather", "shared", (one,)),
    ("one", "first gather", "mapped", (itself,)),
    ("one", "gather", "files", LINE),
)


# ---------------------------------------------------------------------------
# Least squares
# ---------------------------------------------------------------------------


def solve(matrix, right):
    """Gauss, with the largest pivot."""
    size = len(right)
    rows = [list(line) + [value] for line, value in zip(matrix, right)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda r: abs(rows[r][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for r in range(size):
            if r == i:
                continue
            factor = rows[r][i] / rows[i][i]
            rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def is_given(part):
    return isinstance(part, tuple)


def fit(form, points):
    """A factor for each part."""
    free = [part for part in form if not is_given(part)]
    given = [part for part in form if is_given(part)]
    columns = [[part(ranks) for ranks, _ in points] for part in free]
    values = [
        value - sum(factor * part(ranks) for part, factor in given)
        for ranks, value in points
    ]
    matrix = [[sum(a * b for a, b in zip(x, y)) for y in columns] for x in columns]
    right = [sum(a * b for a, b in zip(x, values)) for x in columns]
    found = iter(solve(matrix, right))
    return [part if is_given(part) else (part, next(found)) for part in form]


def value_of(model, ranks):
    return sum(factor * part(ranks) for part, factor in model)


# ---------------------------------------------------------------------------
# Figures
# ---------------------------------------------------------------------------


def read():
    figures = {}
    for line in sys.stdin:
        cells = line.rstrip("\n").split(",")
        where, step, ranks = cells[0], cells[1], int(cells[-1])
        for column, cell in zip(COLUMNS, cells[2:]):
            if cell != "":
                scale = 1 if column in ("messages", "mean", "files") else 1024
                figures[where, step, column, ranks] = float(cell) / scale
    return figures


def show(value):
    if value is None:
        return "-"
    if value >= 10000 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:,.1f}" if value >= 100 else f"{value:,.2f}"


def write_table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "|".join("---" if i < 2 else "---:" for i in range(len(head))) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def write_measured(figures, where):
    rows = []
    numbers = FITTED + (CHECKED,)
    for step in STEPS:
        for column in COLUMNS:
            values = [figures.get((where, step, column, n)) for n in numbers]
            if any(value for value in values):
                rows.append([step, column] + [show(value) for value in values])
    write_table(["step", "of a rank"] + [str(n) for n in numbers], rows)


def words_of(model):
    parts = []
    for part, factor in model:
        name = NAMES[part]
        if name == "1":
            parts.append(f"{factor:.4g}")
        elif round(factor, 3) != 0:
            parts.append(f"{factor:.4g} {name}")
    return " + ".join(parts)


def write_models(figures, where):
    most = ON_A_MACHINE if where == "one" else max(MORE)
    more = [n for n in MORE if n <= most]
    rows = []
    for of, step, column, form in FORMS:
        points = [
            (n, figures[where, step, column, n])
            for n in FITTED
            if of == where and (where, step, column, n) in figures
        ]
        if not points:
            continue
        model = fit(form, points)
        off = [abs(value - value_of(model, n)) for n, value in points]
        share = max(d / value for d, (_, value) in zip(off, points))
        rows.append(
            [step, column, words_of(model), f"{max(off):.2f}", f"{share:.1%}"]
            + [show(figures.get((where, step, column, CHECKED)))]
            + [show(round(value_of(model, n), 1)) for n in more]
        )
    write_table(
        ["step", "of a rank", "model", "furthest", "in parts", f"found at {CHECKED}"]
        + [str(n) for n in more],
        rows,
    )


def main():
    figures = read()
    print("\nIn KiB, but messages and files. docs/ranks.md says what each is. The model")
    print("is fitted to 1 to 32 ranks: *furthest* is what it is off there at most, and")
    print(f"*found at {CHECKED}* what it was not told.")
    for where, title in (
        ("one", "Ranks of one machine, under tarn run"),
        ("apart", "Ranks that share nothing, by Open MPI"),
    ):
        print(f"\n## {title}\n")
        write_measured(figures, where)
        print("\nThe model, and what it says of more ranks:\n")
        write_models(figures, where)


main()
