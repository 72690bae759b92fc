// What OpenCL C has built in that is of wide vectors: clang alone knows how it
// hands these over, so that it compiles both ends. The rest is builtins.c.
//
// The functions have names of their own, and those of the calls, which are
// C++'s, behind them: built-in ones cannot be defined.
#define WIDE(type, letter)                                          \
  type##16 load_##type(size_t i, const __global type * from)        \
      __asm__("_Z7vload16mPU8CLglobalK" letter);                    \
  type##16 load_##type(size_t i, const __global type * from) {      \
    type##16 wide;                                                  \
    for (int k = 0; k < 16; k++)                                    \
      ((__private type *)&wide)[k] = from[i * 16 + k];              \
    return wide;                                                    \
  }                                                                 \
  void store_##type(type##16 wide, size_t i, __global type * to)    \
      __asm__("_Z8vstore16Dv16_" letter "mPU8CLglobal" letter);     \
  void store_##type(type##16 wide, size_t i, __global type * to) {  \
    for (int k = 0; k < 16; k++)                                    \
      to[i * 16 + k] = ((__private type *)&wide)[k];                \
  }

WIDE(uchar, "h")
WIDE(ushort, "t")
WIDE(uint, "j")
WIDE(ulong, "m")
