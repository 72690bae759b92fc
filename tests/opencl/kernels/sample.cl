// Kernels of the stand-in's own test, in OpenCL C. T is defined by an option.

// out[i] = in[i] * by, for each work item.
__kernel void scale(__global T *out, __global const T *in, T by) {
  size_t i = get_global_id(0);
  out[i] = in[i] * by;
}

// Adds up what lies behind addresses: one in memory of each work item.
__kernel void collect(__global const ulong *addresses, __global uint *sum) {
  __global const uint4 *at =
      (__global const uint4 *)addresses[get_global_id(0)];
  uint4 four = at[0];
  atomic_add((volatile __global uint *)sum, four.x + four.y + four.z + four.w);
}

// halves[i] = halves[i] + by, rounded to the nearest half.
__kernel void raise_halves(__global half *halves, float by) {
  size_t i = get_global_id(0);
  vstore_half_rte(vload_half(i, halves) + by, i, halves);
}
