"""The seven parts of scripts/gpu-check, in the order of their worth on a card
that is lent for half an hour. Each takes a Part and fills it."""

import json
import os
import pickle
import shutil

import check
import training
from check import Failed

MIB = 1 << 20
GIB = 1 << 30
GRANULE = 2 * MIB  # of the card's address ranges
ZONES = 2  # of an arena_pool

# Pools beside which Tarn's is measured: its name, and the goal for how many
# times faster Tarn's is where the steps of a workload are learned.
LEARNED = ("@bert-layer", "@resnet50-b8", "@resnet50-b32")
OVER_LIVE = {"@kv-decode": 1.15, "@random": 1.50}


def value_of(rows, name):
    """The value of a figure of tarn bench; None if there is none."""
    for row in rows:
        if row["name"] == name:
            return row["value"]
    return None


def ratio(a, b):
    return a / b if a is not None and b else None


# --- 1: build, conformance, copies -------------------------------------------


def part1(part):
    part.step(conform, part)
    part.step(copies, part)


def conform(part):
    words = ["conform", part.device]
    if part.tiny:
        words += ["--only", "loading,devices", "--no-measure"]
    r = part.tarn(*words, seconds=200)
    counts = {key: r[key] for key in ("passed", "failed", "skipped", "quirks")}
    part.figure("conform_checks_passed", counts["passed"], "checks")
    part.figure("conform_checks_failed", counts["failed"], "checks", 0, least=False)
    part.figure("conform_checks_skipped", counts["skipped"], "checks")
    part.figure("conform_quirks", counts["quirks"], "quirks")
    for c in r["checks"]:
        if c["result"] == "skip":
            part.note(f"conform skips {c['name']}: {c['detail']}")
        elif c["result"] != "pass":
            part.note(f"conform finds {c['name']}: {c['detail']}")
    for copy in r.get("copies", []):
        part.figure(f"conform_{copy['kind']}_{copy['bytes']}", copy["gbs"], "GB/s")


def bench_device(part, *words):
    tiny = ["--passes", "1"] if part.tiny else []
    answer = part.tarn("bench", "device", "--device", part.device, *tiny, *words,
                       seconds=180)
    for row in answer["results"]:
        if not row["failed"]:
            continue
        text = f"{row['name']}: {row['failed']}"
        # A driver may let copies out of plain memory wait for what is before.
        if row["name"] == "queued_4k":
            part.note(text)
        else:
            part.errors.append(text)
    return answer["results"]


# What each rate is compared with: the link as the driver's own pinned copy shows
# it, or the driver's own way of doing the same.
COPY_RATIOS = {  # name: (figure that it is over, of hardware; that of the peer)
    "pinned_h2d": ("driver_pinned_h2d", "pinned_h2d_64m"),
    "pinned_d2h": ("driver_pinned_h2d", "pinned_d2h_64m"),
    "pageable_h2d": ("driver_pinned_h2d", "pageable_h2d_64m"),
    "h2d_64m": ("driver_pinned_h2d", None),
    "d2h_64m": ("driver_pinned_h2d", None),
}


def copies(part):
    rows = bench_device(part, "--table", "1M" if part.tiny else "1G")
    for row in rows:
        over, beside = COPY_RATIOS.get(row["name"], (None, None))
        least = row["unit"].startswith("of ") or row["unit"] == "GB/s"
        part.figure(row["name"], row["value"], row["unit"], row["goal"], least,
                    ratio(row["value"], value_of(rows, over)),
                    value_of(rows, beside))


# --- 2: pools ----------------------------------------------------------------


def part2(part):
    folder = os.path.join(part.options.build, "gpu")
    os.makedirs(folder, exist_ok=True)
    names = workloads(part)
    traces = {n: trace_of(part, n, folder) for n in names}
    own = part.step(pool_rows, part, "arena_pool", names, part.device, 40) or {}
    peers = {}
    for label, prepare in PEERS.items():
        rows = part.step(peer_rows, part, label, prepare, names)
        if rows:
            peers[label] = rows
    rows = part.step(cupy_rows, part, traces)
    if rows:
        peers["cupy_from_python"] = rows
    host = part.step(pool_rows, part, "arena_pool", names, "cpu:0", 15) or {}
    limit = part.step(pool_rows, part, "free_list", names, "cpu:0", 10) or {}
    # The others: what one of these holds of a workload that does not repeat is
    # more than a card has.
    repeating = [name for name in names if name in LEARNED]
    for other in ("page_unit_pool", "no_pool"):
        rows = part.step(pool_rows, part, other, repeating, part.device, 15)
        if rows:
            peers[other] = rows
    for name in names:
        if name in own:
            tell_workload(part, name, own[name], limit.get(name), peers)
            tell_reserved(part, name, own[name], host.get(name),
                          peak_of(traces[name]))


def workloads(part):
    if part.tiny:
        return ["@bert-layer"]
    return [*LEARNED, *OVER_LIVE]


def trace_of(part, name, folder):
    path = os.path.join(folder, name.lstrip("@") + ".pickle")
    status, out, err = part.run([part.options.tool, "convert", name, path,
                                 "--to", "pytorch", "--force"], 60)
    if status != 0:
        raise Failed(f"tarn convert: {check.last_line(err or out)}")
    return path


def peak_of(path):
    """The most bytes in use at once."""
    live, peak, sizes = 0, 0, {}
    with open(path, "rb") as file:
        for event in pickle.load(file)["device_traces"][0]:
            if event["action"] == "alloc":
                sizes[event["addr"]] = event["size"]
                live += event["size"]
                peak = max(peak, live)
            elif event["action"] == "free_completed":
                live -= sizes.pop(event["addr"])
    return peak


def pool_rows(part, pool, names, device, seconds):
    """{workload: row} of tarn bench pool."""
    limit = ["--passes", "1"] if part.tiny else ["--seconds", str(seconds)]
    answer = part.tarn("bench", "pool", "--pool", pool, "--workload",
                       ",".join(names), "--device", device, "--threads", "1",
                       "--touched", "no", *limit, seconds=seconds + 30)
    rows = {}
    for workload in answer["workloads"]:
        row = workload["results"][0]
        if not row["failed"]:
            rows[workload["name"]] = row
            continue
        tell = part.skip if row["failed"].startswith("over the limit") else part.lacks
        tell(f"{os.path.basename(pool)} of {workload['name']}", row["failed"])
    return rows


def torch_peer(part):
    """The allocator of PyTorch by c10, against the headers that it came with."""
    paths = part.python("torch_paths.py", seconds=60)
    words = [check.compiler(["g++", "c++", "clang++"])]
    for folder in [*paths["includes"], *cuda_headers()]:
        words += ["-isystem", folder]
    for folder in paths["libraries"]:
        words += ["-L", folder, f"-Wl,-rpath,{folder}"]
    words += ["-std=c++17", "-shared", "-fPIC", "-lc10_cuda",
              "-lc10", f"-D_GLIBCXX_USE_CXX11_ABI={paths['abi']}"]
    return check.compile_shared(part, words, "peer_torch.cc", "peer_torch.so")


def cuda_headers():
    folders = []
    if os.environ.get("CUDA_HOME"):
        folders.append(os.environ["CUDA_HOME"])
    nvcc = shutil.which("nvcc")
    if nvcc:
        folders.append(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))))
    folders.append("/usr/local/cuda")
    headers = [os.path.join(folder, "include") for folder in folders]
    return [h for h in headers if os.path.exists(os.path.join(h, "cuda_runtime_api.h"))]


def expandable_peer(part):
    return torch_peer(part) + ":expandable_segments:True"


def async_peer(part):
    words = [check.compiler(["cc", "gcc", "clang"]), "-shared", "-fPIC", "-ldl"]
    return check.compile_shared(part, words, "peer_async.c", "peer_async.so")


PEERS = {
    "torch": torch_peer,
    "torch_expandable": expandable_peer,
    "cuda_malloc_async": async_peer,
}


def peer_rows(part, label, prepare, names):
    try:
        return pool_rows(part, prepare(part), names, part.device, 25)
    except Failed as error:
        part.lacks(label, error)
        return None


def cupy_rows(part, traces):
    rehearse = ["--rehearse"] if part.machine["rehearsal"] else []
    try:
        answer = part.python("pool_cupy.py", *rehearse, *traces.values(), seconds=60)
    except Failed as error:
        part.lacks("cupy", error)
        return None
    if rehearse:
        part.skip("cupy", "a rehearsal: the loop has run without it")
        return None
    return {name: answer[path] for name, path in traces.items()}


def tell_workload(part, name, own, limit, peers):
    short = name.lstrip("@")
    pair = own["pair_ns"]
    goals = {"torch": 10, "cuda_malloc_async": 30} if name in LEARNED else {}
    part.figure(f"{short}: arena_pool", pair, "ns per pair",
                hardware=ratio(limit["pair_ns"], pair) if limit else None)
    for label, rows in peers.items():
        row = rows.get(name)
        if row is None or row["pair_ns"] is None:
            continue
        part.figure(f"{short}: {label}", row["pair_ns"], "ns per pair")
        part.figure(f"{short}: {label} over arena_pool", ratio(row["pair_ns"], pair),
                    "x", goals.get(label), peer=ratio(row["pair_ns"], pair))
        if row["reserved_over_live"] is not None:
            part.figure(f"{short}: {label}, reserved over live",
                        row["reserved_over_live"], "of live")


def tell_reserved(part, name, own, host, peak):
    goal = OVER_LIVE.get(name)
    on_host = host["reserved_over_live"] if host else None
    if goal is None and on_host is not None:
        goal = on_host + ZONES * GRANULE / peak
    held = own["reserved_over_live"]
    part.figure(f"{name.lstrip('@')}: arena_pool, reserved over live", held,
                "of live", goal, least=False, peer=ratio(held, on_host))


# --- 3: rows and whole memory ------------------------------------------------


def part3(part):
    part.step(rows_of_table, part)
    alone = part.step(whole, part, 1)
    for ranks in (2, 4):
        rows = part.step(whole, part, ranks)
        if rows and alone and ranks == 2:
            compare_ranks(part, alone, rows)


def table_bytes(part):
    """8 GiB, or what leaves half of the card's free memory."""
    if part.tiny:
        return 4 * MIB
    free = part.free_bytes or 16 * GIB
    return min(8 * GIB, free // 2 // GIB * GIB or free // 2)


def torch_rows(part, size):
    device = "cuda" if not part.machine["rehearsal"] else "cpu"
    try:
        answer = part.python("rows_torch.py", device, str(size),
                             str(min(size, 256 * MIB)), "64", "256", "1024",
                             seconds=60)
    except Failed as error:
        part.lacks("torch.index_select", error)
        return {}
    part.note(f"rows of PyTorch {answer['torch']}, on {device}")
    return answer["rows"]


def rows_of_table(part):
    size = table_bytes(part)
    rows = bench_device(part, "--rows", "--table", str(size))
    part.figure("table", size, "bytes")
    copy = value_of(rows, "copy_within")
    part.figure("copy_within", copy, "GB/s")
    peers = torch_rows(part, size)
    goals = {64: 0.5, 256: 0.8, 1024: 0.9}
    for width, goal in goals.items():
        tell_gather(part, width, goal, rows, peers.get(str(width), {}))
    add, peer = value_of(rows, "add_256"), peers.get("256", {}).get("index_add")
    part.figure("scatter_add_256", add, "GB/s", hardware=ratio(add, copy),
                peer=ratio(add, peer))
    if peer:
        part.note("the peer of scatter_add is torch's index_add_, whose sums may "
                  "differ from run to run")
    for width, goal in ((256, 0.8), (1024, 0.9)):
        over = value_of(rows, f"host_rows_{width}_of_link")
        part.figure(f"host_rows_{width}", value_of(rows, f"host_rows_{width}"),
                    "GB/s", hardware=over)
        part.figure(f"host_rows_{width}_of_link", over, "of link", goal,
                    hardware=over)


def tell_gather(part, width, goal, rows, peer):
    own = value_of(rows, f"gather_{width}")
    over = value_of(rows, f"gather_{width}_of_copy")
    beside = ratio(own, peer.get("index_select"))
    part.figure(f"gather_{width}", own, "GB/s", hardware=over, peer=beside)
    part.figure(f"gather_{width}_of_copy", over, "of copy", goal, hardware=over)
    if beside is not None:
        part.figure(f"gather_{width}_over_index_select", beside, "x torch", 1.0,
                    peer=beside)


def whole(part, ranks, device=None, size=GIB, batch=64 * MIB):
    """The rows of tarn bench whole."""
    sizes = ["--size", str(4 * MIB), "--batch", "256K", "--passes", "1"]
    if not part.tiny:
        sizes = ["--size", str(size), "--batch", str(batch), "--passes", "3"]
    device = device or part.device
    answer = part.tarn("bench", "whole", "-n", str(ranks), "--device", device,
                       "--no-mpi", *sizes, seconds=60)
    if part.said:
        part.lacks(f"whole memory of {ranks} ranks", part.said)
    for row in answer["results"]:
        name = f"{ranks} ranks: {row['type']}, {row['location']}: {row['op']}"
        if row["failed"]:
            part.skip(name, row["failed"])
        elif row["op"] in ("gather", "scatter_add", "memcpy"):
            of = f" {row['row_bytes']}" if row["row_bytes"] else ""
            part.figure(name + of, row["gbs"], "GB/s", hardware=row["over_memcpy"])
    return answer["results"]


def gathers(rows):
    return {row["row_bytes"]: row for row in rows
            if row["type"] == "continuous" and row["location"] == "device"
            and row["op"] == "gather" and not row["failed"]}


def compare_ranks(part, alone, both):
    """One at a time within 5% of a rank that has the table by itself."""
    one, two = gathers(alone), gathers(both)
    for width in sorted(one.keys() & two.keys()):
        part.figure(f"2 ranks, one at a time: gather {width} over one rank's own",
                    ratio(two[width]["alone_gbs"], one[width]["gbs"]),
                    "x", 0.95)
        part.figure(f"2 ranks, both at once: gather {width} over one rank's own",
                    ratio(two[width]["gbs"], one[width]["gbs"]), "x")


# --- 4: PyTorch's training ---------------------------------------------------


def part4(part):
    training.measure(part)


# --- 5: synced, sleep, capture -----------------------------------------------


def part5(part):
    part.step(synced, part)
    part.step(sleep_and_capture, part)


def synced(part):
    tiny = ["--images", "1", "--rows", "10", "--passes", "1"] if part.tiny else []
    answer = part.tarn("bench", "synced", "--device", part.device, *tiny, seconds=60)
    for row in answer["results"]:
        part.figure(row["name"], row["value"], row["unit"])
        part.figures[-1].update(goal=row["goal"], met=row["met"])
        if row.get("failed"):
            part.errors.append(f"{row['name']}: {row['failed']}")


def sleep_and_capture(part):
    library = os.path.join(part.options.build, "libtarn.a")
    words = [check.compiler(["cc", "gcc", "clang"]), "-std=c11", "-D_GNU_SOURCE",
             library, "-lpthread", "-ldl", "-lm"]
    program = check.compile_shared(part, words, "sleep_capture.c", "sleep_capture")
    size = 64 * MIB if part.tiny else 4 * GIB
    status, out, err = part.run([program, part.device, str(size)], 60,
                                training.plugins_of(part))
    if status != 0:
        raise Failed(check.last_line(err))
    for row in json.loads(out)["figures"]:
        part.figure(row["name"], row["value"], row["unit"])


# --- 6: compute-sanitizer ----------------------------------------------------


def part6(part):
    if shutil.which("compute-sanitizer") is None:
        part.lacks("compute-sanitizer", "not on this machine")
        sanitize(part, "without compute-sanitizer", [])
        return
    for tool in ("memcheck", "racecheck", "initcheck"):
        part.step(sanitize, part, tool,
                  ["compute-sanitizer", "--target-processes", "all", "--tool", tool,
                   "--report-api-errors", "no", "--error-exitcode", "99"])


# Without a process for each check: the tool takes seconds to begin with one.
SANITIZED = {
    "conform": ["conform", "--only", "memory,copies,queued,rows", "--no-measure",
                "--in-process"],
    "rows": ["bench", "device", "--device", "", "--rows", "--table", "1M",
             "--passes", "1"],
}


def sanitize(part, tool, prefix):
    """Findings over small sizes; skipped by name where the tool refuses. Only
    kernels are of interest to the tools other than memcheck."""
    for name, words in SANITIZED.items():
        if name == "conform" and tool in ("racecheck", "initcheck"):
            continue
        command = [w or part.device for w in words]
        if name == "conform":
            command.insert(1, part.device)
        status, out, err = part.run([*prefix, part.options.tool, *command], 100)
        text = out + err
        if not prefix:
            part.figure(f"{name}: exit status", status, "")
        elif "ERROR SUMMARY:" in text:
            counts = [int(line.split("ERROR SUMMARY:")[1].split()[0])
                      for line in text.splitlines() if "ERROR SUMMARY:" in line]
            part.figure(f"{tool}: {name}", sum(counts), "findings", 0, least=False)
            if status not in (0, 99):
                part.note(f"{tool}: {name} ended with status {status}")
        else:
            part.skip(f"{tool}: {name}", check.last_line(text))


# --- 7: the processor's cores ------------------------------------------------


def part7(part):
    most = os.cpu_count() or 1
    counts = [n for n in (1, 2, 4, 8, 16) if n <= most] or [1]
    part.step(threads_of_pools, part, counts)
    for ranks in counts:
        part.step(whole, part, ranks, "cpu", 256 * MIB, 8 * MIB)


def bench_threads(part, counts):
    tiny = ["--passes", "1"] if part.tiny else ["--seconds", "40"]
    names = "@bert-layer" if part.tiny else "@bert-layer,@kv-decode,@random"
    return part.tarn("bench", "pool", "--pool",
                     "free_list,glibc,mimalloc,jemalloc,tcmalloc,arena_pool",
                     "--workload", names, "--threads", ",".join(map(str, counts)),
                     "--touched", "no", *tiny, seconds=60)


def threads_of_pools(part, counts):
    try:
        answer = bench_threads(part, counts)
    except Failed as error:
        if max(counts) <= 2:
            raise
        part.skip("more than two threads of a pool", error)
        answer = bench_threads(part, [1, 2])
    for workload in answer["workloads"]:
        tell_threads(part, workload)


def tell_threads(part, workload):
    rows = {row["name"]: row for row in workload["results"]}
    limit = rows["free_list"]["mops"]
    peers = [row["mops"] for name, row in rows.items()
             if name not in ("free_list", "arena_pool") and row["mops"]]
    for name, row in rows.items():
        title = f"{workload['name'].lstrip('@')}, {workload['threads']} threads: {name}"
        if row["failed"]:
            part.skip(title, row["failed"])
            continue
        best = max(peers) if peers and name == "arena_pool" else None
        part.figure(title, row["mops"], "Mops", hardware=ratio(row["mops"], limit),
                    peer=ratio(row["mops"], best))


# --- all ---------------------------------------------------------------------

# The title, the seconds that it may take, the work, and whether it is about the
# device: 21 minutes together, and one for the build.
PARTS = {
    1: ("Build, conformance, copies", 270, part1, True),
    2: ("Pools", 270, part2, True),
    3: ("Rows and whole memory", 240, part3, True),
    4: ("PyTorch's training", 210, part4, True),
    5: ("Synced buffers, sleep, capture", 90, part5, True),
    6: ("compute-sanitizer", 90, part6, True),
    7: ("The processor's cores", 90, part7, False),
}
