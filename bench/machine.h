// machine.h - what a figure was measured on: no figure stands without it.
#ifndef TARN_BENCH_MACHINE_H_
#define TARN_BENCH_MACHINE_H_

enum { MACHINE_SIZE = 256 };

// "Intel(R) Xeon(R) Processor, 2 cores, Linux 6.1.0": the processor, how many
// of it are online, the kernel, and a warning if this program was not built to
// be fast. Into |out|, MACHINE_SIZE bytes, which it returns.
char *machine_describe(char *out);

#endif  // TARN_BENCH_MACHINE_H_
