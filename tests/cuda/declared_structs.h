// declared_structs.h - the structs of plugins/cuda/api.h, which a file that
// includes cuda.h cannot see.
#ifndef TARN_TESTS_CUDA_DECLARED_STRUCTS_H_
#define TARN_TESTS_CUDA_DECLARED_STRUCTS_H_

#include <stddef.h>

// X(struct, member). The first of each struct comes with its size.
#define DECLARED_MEMBERS(X)                                  \
  X(CUmemLocation_st, type)                                  \
  X(CUmemLocation_st, id)                                    \
  X(CUmemAllocationProp_st, type)                            \
  X(CUmemAllocationProp_st, requestedHandleTypes)            \
  X(CUmemAllocationProp_st, location)                        \
  X(CUmemAllocationProp_st, win32HandleMetaData)             \
  X(CUmemAllocationProp_st, allocFlags)                      \
  X(CUmemAllocationProp_st, allocFlags.compressionType)      \
  X(CUmemAllocationProp_st, allocFlags.gpuDirectRDMACapable) \
  X(CUmemAllocationProp_st, allocFlags.usage)                \
  X(CUmemAllocationProp_st, allocFlags.reserved)             \
  X(CUmemAccessDesc_st, location)                            \
  X(CUmemAccessDesc_st, flags)                               \
  X(CUmemPoolProps_st, allocType)                            \
  X(CUmemPoolProps_st, handleTypes)                          \
  X(CUmemPoolProps_st, location)                             \
  X(CUmemPoolProps_st, win32SecurityAttributes)              \
  X(CUmemPoolProps_st, maxSize)                              \
  X(CUmemPoolProps_st, usage)                                \
  X(CUmemPoolProps_st, reserved)

typedef struct declared_member {
  const char *name;
  size_t struct_size;
  size_t offset;
  size_t size;
} declared_member;

#define DECLARED_MEMBER(type, member)                                     \
  {#type "." #member, sizeof(struct type), offsetof(struct type, member), \
   sizeof(((struct type *)NULL)->member)},

// As the plug-in declares them, in the order of the list.
extern const declared_member declared_members[];

#endif  // TARN_TESTS_CUDA_DECLARED_STRUCTS_H_
