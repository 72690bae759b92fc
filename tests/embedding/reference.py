"""What an embedding should become, in NumPy, bit for bit.

  reference.py FOLDER OPTIONS...

OPTIONS are optimizer, flags, lr, decay, epsilon, momentum, beta1, beta2, alpha,
initial, seed, rows, width, batches, batch, and the dtypes of table and
gradients. FOLDER has table, indices and gradients, and what came of it: table
after, and each state by its name. Exit status 1: a bit differs.
"""
import sys
import numpy as np

F = np.float32
U = np.uint64
DECOUPLED, ROW_WISE, STOCHASTIC = 1, 2, 4
folder = sys.argv[1]
(optimizer, flags, lr, decay, epsilon, momentum, beta1, beta2, alpha, initial,
 seed, rows, width, batches, batch, table_dtype, gradient_dtype) = sys.argv[2:]
flags, seed, rows, width, batches, batch = map(
    int, (flags, seed, rows, width, batches, batch))
lr, decay, epsilon, momentum, beta1, beta2, alpha, initial = (
    F(float.fromhex(x)) for x in (lr, decay, epsilon, momentum, beta1, beta2,
                                  alpha, initial))


def read(name, dtype, shape):
    return np.fromfile(f"{folder}/{name}", dtype).reshape(shape)


def to_f32(raw, dtype):
    if dtype == "f32":
        return raw.view(F)
    if dtype == "f16":
        return raw.view(np.float16).astype(F)
    return (raw.astype(np.uint32) << 16).view(F)


def to_bf16(x):
    bits = x.view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def mix(x):
    x = (x ^ (x >> U(30))) * U(0xbf58476d1ce4e5b9)
    x = (x ^ (x >> U(27))) * U(0x94d049bb133111eb)
    return x ^ (x >> U(31))


ODD = U(0x9e3779b97f4a7c15)


def stochastic(x, apply, row):
    base = mix(mix(mix(U(seed) + ODD) + U(apply) * ODD) + U(row) * ODD)
    r = (mix(base + np.arange(width, dtype=U) * ODD) >> U(32)).astype(np.uint32)
    bits = x.view(np.uint32)
    if table_dtype == "bf16":
        return ((bits + (r & 0xffff)) >> 16).astype(np.uint16)
    sign = (bits >> 16 & 0x8000).astype(np.uint16)
    bits = bits & 0x7fffffff
    small = (np.abs(x).astype(np.float64) * 2.0**24 + r * 2.0**-32).astype(np.uint16)
    large = (((bits + (r & 0x1fff)) >> 13) - (112 << 10)).astype(np.uint16)
    return sign | np.where(np.abs(x) < 2.0**-14, small, large)


def power(base, exponent):
    base, result = float(base), 1.0
    while exponent:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


def squares(g):
    sums = np.zeros(8, F)
    for i in range(0, len(g), 8):
        part = g[i:i + 8]
        sums[:len(part)] = sums[:len(part)] + part * part
    total = F(0)
    for k in range(8):
        total = total + sums[k]
    return total


def square_of(g):
    total = None
    for at in range(0, len(g), 2048):
        part = squares(g[at:at + 2048])
        total = part if total is None else total + part
    return total


raw = np.dtype("<u4" if table_dtype == "f32" else "<u2")
table = read("table", raw, (rows, width)).copy()
graw = np.dtype("<u4" if gradient_dtype == "f32" else "<u2")
state = [np.zeros((rows, width), F), np.zeros((rows, width), F)]
count = np.zeros(rows, np.int32)
names = {"sgd": ["momentum_buffer"] if momentum else [],
         "adam": ["exp_avg", "exp_avg_sq"], "rmsprop": ["square_avg"],
         "adagrad": ["sum"]}[optimizer]
if optimizer == "adagrad":
    state[0] = np.full((rows, 1 if flags & ROW_WISE else width), initial, F)
one = F(1)


def update(row, g):
    p = to_f32(table[row], table_dtype)
    a, b = state[0][row], state[1][row]
    if decay and not flags & DECOUPLED:
        g = g + decay * p
    if optimizer == "sgd" and not momentum:
        p = p - lr * g
    elif optimizer == "sgd":
        a[:] = momentum * a + g
        p = p - lr * a
    elif optimizer == "adam":
        count[row] += 1
        t = int(count[row])
        step = F(float(lr) * np.sqrt(1 - power(beta2, t)) / (1 - power(beta1, t)))
        if flags & DECOUPLED:
            p = p * (one - lr * decay)
        a[:] = beta1 * a + (one - beta1) * g
        b[:] = beta2 * b + ((one - beta2) * g) * g
        p = p - (step * a) / (np.sqrt(b) + epsilon)
    elif optimizer == "rmsprop":
        a[:] = alpha * a + ((one - alpha) * g) * g
        p = p - (lr * g) / (np.sqrt(a) + epsilon)
    elif flags & ROW_WISE:
        a[0] = a[0] + square_of(g) / F(width)
        p = p - (lr / (np.sqrt(a[0]) + epsilon)) * g
    else:
        a[:] = a + g * g
        p = p - (lr * g) / (np.sqrt(a) + epsilon)
    return p


with np.errstate(over="ignore"):
    for n in range(batches):
        indices = read(f"indices{n}", "<i8", batch)
        gradients = to_f32(read(f"gradients{n}", graw, (batch, width)),
                           gradient_dtype)
        sums = {}
        for i, row in enumerate(indices.tolist()):
            g = gradients[i]
            sums[row] = sums[row] + g if row in sums else g
        for row, g in sums.items():
            p = update(row, g).astype(F)
            if flags & STOCHASTIC:
                table[row] = stochastic(p, n, row)
            elif table_dtype == "f32":
                table[row] = p.view(np.uint32)
            elif table_dtype == "f16":
                table[row] = p.astype(np.float16).view(np.uint16)
            else:
                table[row] = to_bf16(p)

wrong = 0
results = [("after", table, raw)]
results += [(n, state[k], np.dtype(F)) for k, n in enumerate(names)]
if optimizer == "adam":
    results.append(("step", count, np.dtype(np.int32)))
for name, want, dtype in results:
    got = read(name, dtype, want.shape)
    bad = np.argwhere(got.view("u1") != want.view("u1"))
    if len(bad):
        where = tuple(np.argwhere(got != want)[0]) if (got != want).any() else ()
        print(f"{name}: {len(bad)} bytes differ, first at {where}: "
              f"{got[where]} is not {want[where]}")
        wrong = 1
changed = (table != read("table", raw, (rows, width))).any(axis=1).sum()
if changed < rows // 4:
    print(f"only {changed} rows have changed")
    wrong = 1
sys.exit(wrong)
