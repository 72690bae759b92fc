"""A program to record: what a script of linear algebra does to the heap.

Least squares by normal equations, a singular value decomposition and a
convolution by FFT, each with temporaries as NumPy makes them.
"""
import sys

import numpy


def least_squares(rows, columns):
    table = numpy.random.default_rng(1).standard_normal((rows, columns))
    wanted = table @ numpy.arange(columns) + 0.1
    found = numpy.linalg.solve(table.T @ table, table.T @ wanted)
    return float(numpy.abs(table @ found - wanted).max())


def rank(size):
    matrix = numpy.random.default_rng(2).standard_normal((size, size // 4))
    square = matrix @ matrix.T
    left, values, right = numpy.linalg.svd(square)
    rebuilt = (left * values) @ right
    return int((values > 1e-6).sum()), float(numpy.abs(rebuilt - square).max())


def smooth(length):
    signal = numpy.random.default_rng(3).standard_normal(length)
    window = numpy.hanning(length // 64)
    spectrum = numpy.fft.rfft(signal) * numpy.fft.rfft(window, length)
    return float(numpy.fft.irfft(spectrum, length).std())


def main(rounds):
    for _ in range(rounds):
        print(least_squares(20000, 64))
        print(rank(400))
        print(smooth(1 << 18))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
