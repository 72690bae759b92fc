"""The tool `tarn`, which the package has with it: its answers as objects."""
import html
import json
import os
import pickle
import subprocess
import tempfile
import types

from ._command import path_of_tool
from ._errors import InvalidArgument, TarnError


# --- running it --------------------------------------------------------------

class _Trace:
    """A trace as an argument: a path, a workload "@bert-layer", or a snapshot
    of torch.cuda.memory._snapshot(), which goes through memory."""

    def __init__(self, trace):
        self._fd = None
        if not isinstance(trace, (dict, list)):
            self.argument = os.fspath(trace)
            return
        self._fd = os.memfd_create("snapshot")
        with open(self._fd, "wb", closefd=False) as file:
            pickle.dump(trace, file, protocol=4)
        self.argument = f"/proc/self/fd/{self._fd}"

    @property
    def fds(self):
        return () if self._fd is None else (self._fd,)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._fd is not None:
            os.close(self._fd)


def _arguments(options):
    """top=3 is --top 3, force=True is --force; lists are joined by commas."""
    for name, value in options.items():
        name = "--" + name.replace("_", "-")
        if value is True:
            yield name
        elif value not in (None, False):
            yield name
            yield (",".join(map(str, value))
                   if isinstance(value, (list, tuple)) else os.fspath(value)
                   if isinstance(value, os.PathLike) else str(value))


def _json(verb, trace, options, call, answers=(0,)):
    return json.loads(_run(verb, trace, options, call, answers, "-o", "json"))


def _run(verb, trace, options, call, answers=(0,), *more):
    command = [path_of_tool(), verb, trace.argument, *_arguments(options),
               *more]
    done = subprocess.run(command, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          pass_fds=trace.fds)
    if done.returncode not in answers or not done.stdout:
        said = done.stderr.decode(errors="replace").strip()
        raise _refused(said or f"ended with {done.returncode}", call)
    return done.stdout


def _refused(said, call):
    if said.startswith("tarn"):
        return InvalidArgument(said, "TARN_E_INVALID", call)
    return TarnError(said, "TARN_E_IO", call)


def _object(value):
    """JSON's objects as objects with attributes."""
    if isinstance(value, dict):
        return types.SimpleNamespace(**{k: _object(v)
                                        for k, v in value.items()})
    return [_object(v) for v in value] if isinstance(value, list) else value


class Answer:
    """What the tool has said, an attribute for each key of its JSON.

    raw: the JSON as a dict. Notebooks show it as a picture or a table.
    """

    def __init__(self, raw):
        self.raw = raw
        self.__dict__.update(vars(_object(raw)))


# --- pieces of HTML ----------------------------------------------------------

def _bytes(count):
    """As the tool writes it: cut to two places."""
    if count is None:
        return ""
    if abs(count) < 1024:
        return f"{count} bytes"
    shift = min(30, (abs(count).bit_length() - 1) // 10 * 10)
    unit = {10: "KiB", 20: "MiB", 30: "GiB"}[shift]
    return f"{count * 100 // (1 << shift) / 100:,.2f} {unit}"


def _row(cells, tag="td"):
    """Numbers keep to one line; a frame may take several."""
    style = "text-align:left;white-space:{}"
    return "<tr>" + "".join(
        f"<{tag} style='{style.format('normal' if n == 0 else 'nowrap')}'>"
        f"{html.escape(str(cell))}</{tag}>"
        for n, cell in enumerate(cells)) + "</tr>"


def _table(title, head, rows):
    body = "".join(_row(row) for row in rows)
    return (f"<b>{html.escape(title)}</b><table>{_row(head, 'th')}{body}"
            "</table>" if rows else "")


def _frame(page, height):
    return (f'<iframe srcdoc="{html.escape(page)}" width="100%" '
            f'height="{height}" style="border:0"></iframe>')


# --- why ---------------------------------------------------------------------

class Why(Answer):
    """Who held the memory at the peak of a trace.

    peak_bytes; holders: each .frame, .bytes, .blocks, the most first; roles:
    each .role, .bytes (parameter, gradient, optimizer state, ...), empty where
    the tool tells none; all else of `tarn why -o json`.
    """

    def __init__(self, raw):
        super().__init__(raw)
        self.roles = getattr(self, "roles", [])

    def _share(self, count):
        return f"{100 * count / self.peak_bytes:.1f}%" if self.peak_bytes \
            else ""

    def __str__(self):
        lines = [f"Peak {_bytes(self.peak_bytes)} at event {self.peak_event}"]
        for held in self.roles:
            lines.append(f"{_bytes(held.bytes):>12}  "
                         f"{self._share(held.bytes):>6}  {held.role}")
        for held in self.holders:
            lines.append(f"{_bytes(held.bytes):>12}  "
                         f"{self._share(held.bytes):>6}  {held.frame}")
        return "\n".join(lines)

    def _repr_html_(self):
        head = f"Peak {_bytes(self.peak_bytes)}"
        roles = [(held.role, _bytes(held.bytes), self._share(held.bytes))
                 for held in self.roles]
        holders = [(held.frame, _bytes(held.bytes), self._share(held.bytes),
                    held.blocks) for held in self.holders]
        return (_table(f"{head}, by role", ("role", "bytes", "share"), roles)
                + _table(f"{head}, by holder",
                         ("frame", "bytes", "share", "blocks"), holders))


def why(trace, **options):
    """Who held the memory when |trace| had its peak: a Why.

    trace:   a path, or what torch.cuda.memory._snapshot() gives.
    options: of `tarn why`: top=10, at=EVENT, capacity="6G", ...
    InvalidArgument: the tool cannot read it; the text says what it is.
    """
    with _Trace(trace) as given:
        return Why(_json("why", given, options, "why"))


# --- view --------------------------------------------------------------------

class View:
    """A page that shows a trace; html: its text. Notebooks show the page."""

    def __init__(self, page):
        self.html = page

    def save(self, path):
        """Writes the page."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self):
        return _frame(self.html, 720)


def view(trace, **options):
    """The page of `tarn view`: a View. options: title="...", ..."""
    with _Trace(trace) as given:
        page = _run("view", given, {**options, "html": "/dev/stdout"}, "view")
    return View(page.decode())


# --- replay ------------------------------------------------------------------

class Replay(Answer):
    """What pools do with a trace. results: each .pool, .reserved_peak_bytes,
    .reserved_over_live, .iterations, each .alloc_ms, .hits, ..."""

    def _repr_html_(self):
        rows = [(r.pool, r.device, f"{r.iterations[-1].alloc_ms:.3f}",
                 _bytes(r.reserved_peak_bytes),
                 f"{r.reserved_over_live:.2f}") for r in self.results]
        return _table(f"{self.trace}: {self.events} events",
                      ("pool", "device", "steady ms", "reserved peak",
                       "over live"), rows)


def replay(trace, **options):
    """Runs the requests of |trace| through pools: a Replay.

    trace:   as of why(); or a workload, "@bert-layer".
    options: of `tarn replay`: pool=["arena_pool", "no_pool"],
             device="cpu:0", iterations=3, dry=True, ...
    """
    with _Trace(trace) as given:
        return Replay(_json("replay", given, options, "replay"))


# --- plan --------------------------------------------------------------------

class Plan(Answer):
    """Offsets of buffers. offsets: bytes, in the order of the buffers, of NumPy
    where it is installed; height: bytes in all; lower_bound; status: "optimal",
    "feasible", ...; svg: a picture."""

    def __init__(self, raw, offsets, svg):
        super().__init__(raw)
        self.offsets = offsets
        self.svg = svg

    def _repr_html_(self):
        return self.svg or html.escape(self.status)


def _lines(buffers):
    yield "id,lower,upper,size,alignment"
    for number, buffer in enumerate(buffers):
        lower, upper, size, *more = buffer
        yield f"{number},{lower},{upper},{size},{more[0] if more else 1}"


def _offsets(path):
    with open(path, encoding="utf-8") as file:
        at = file.readline().rstrip("\n").split(",").index("offset")
        found = [int(line.rstrip("\n").split(",")[at]) for line in file]
    try:
        import numpy
    except ImportError:
        return found
    return numpy.array(found, numpy.int64)


def plan(buffers, **options):
    """Gives each buffer an offset: a Plan.

    buffers: rows (first step, step behind the last, bytes), or with the
             alignment in bytes as a fourth: a list, or an array of NumPy.
    options: of `tarn plan`: capacity="6G", time_limit=2, threads=2, ...

    Where nothing fits the capacity, status is "infeasible" or "out_of_time",
    and offsets is None.
    """
    with tempfile.TemporaryDirectory(prefix="libtarn-") as folder:
        table, out, svg = (os.path.join(folder, name) for name in
                           ("buffers.csv", "plan.csv", "plan.svg"))
        with open(table, "w", encoding="utf-8") as file:
            file.write("\n".join(_lines(buffers)) + "\n")
        with _Trace(table) as given:
            raw = _json("plan", given, {**options, "out": out, "svg": svg},
                        "plan", (0, 1))
        if not os.path.exists(out):
            return Plan(raw, None, None)
        with open(svg, encoding="utf-8") as file:
            return Plan(raw, _offsets(out), file.read())
