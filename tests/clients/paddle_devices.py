"""PaddlePaddle on Tarn's devices: it loads the plug-ins itself.

    CUSTOM_DEVICE_ROOT=FOLDER paddle_devices.py TYPE...

FOLDER has tarn_TYPE.so. Round trips of all dtypes, two devices where there are
two, threads, and a request that no device has room for.
"""
import sys
import threading

import numpy as np
import paddle

DTYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "float16",
          "float32", "float64", "complex64", "complex128")


def values(dtype, seed, shape=(37, 53)):
    return (np.random.default_rng(seed).random(shape) * 100).astype(dtype)


def round_trip(array, place):
    there = paddle.to_tensor(array, place=place)
    assert str(there.place) == str(place), (there.place, place)
    back = there.numpy()
    assert back.dtype == array.dtype and np.array_equal(back, array), \
        (str(place), array.dtype)


def bfloat16(place):
    there = paddle.to_tensor(values("float32", 1), place=paddle.CPUPlace())
    there = there.astype("bfloat16")
    back = there._copy_to(place, True).cpu()
    assert back.dtype == paddle.bfloat16
    assert np.array_equal(back.astype("float32").numpy(),
                          there.astype("float32").numpy())


def sizes(place):
    for count in (1, 255, 4096, 1 << 20, 5_000_001):
        round_trip(values("uint8", count, (count,)), place)


def threads(place):
    failures = []

    def work(number):
        try:
            for k in range(20):
                round_trip(values("float32", 100 * number + k), place)
        except Exception as error:  # to be told by the main thread
            failures.append(error)

    started = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    assert not failures, failures


def out_of_memory(place):
    """The device has less than 64 times 16 MiB."""
    def fill():
        return [paddle.to_tensor(np.zeros(16 << 20, np.uint8), place=place)
                for _ in range(64)]

    try:
        fill()
    except (MemoryError, RuntimeError, OSError) as error:
        return str(error).strip().splitlines()[-1]
    raise AssertionError("1 GiB fits")


def main():
    there = paddle.device.get_all_custom_device_type()
    for kind in sys.argv[1:]:
        assert kind in there, f"{kind} is not among {there}"
        count = sum(device.split(":")[0] == kind for device in
                    paddle.device.get_available_custom_device())
        places = [paddle.CustomPlace(kind, n) for n in range(count)]
        for place in places:
            for dtype in DTYPES:
                round_trip(values(dtype, 7), place)
            bfloat16(place)
            sizes(place)
            threads(place)
        print(f"PaddlePaddle {paddle.__version__}, {kind}: {count} devices, "
              f"{len(DTYPES) + 1} dtypes, 4 threads")
        if kind == "sim":
            assert count == 2, count
            told = out_of_memory(places[0])
            round_trip(values("float32", 3), places[0])
            print(f"PaddlePaddle, {kind}: out of memory is {told}, and it "
                  "goes on")


main()
