// The dtypes of the format, in order of element size. Equal sizes are in the
// order that other writers use for tensors, so that the same tensors make the
// same file.
#include <string.h>

#include "model/safetensors.h"

static const tarn__model_safetensors_dtype dtypes[] = {
    {"BOOL", TARN_DTYPE_BOOL, 8},
    {"F4", TARN_DTYPE_NONE, 4},
    {"F6_E2M3", TARN_DTYPE_NONE, 6},
    {"F6_E3M2", TARN_DTYPE_NONE, 6},
    {"U8", TARN_DTYPE_U8, 8},
    {"I8", TARN_DTYPE_I8, 8},
    {"F8_E5M2", TARN_DTYPE_NONE, 8},
    {"F8_E4M3", TARN_DTYPE_NONE, 8},
    {"F8_E8M0", TARN_DTYPE_NONE, 8},
    {"F8_E4M3FNUZ", TARN_DTYPE_NONE, 8},
    {"F8_E5M2FNUZ", TARN_DTYPE_NONE, 8},
    {"I16", TARN_DTYPE_I16, 16},
    {"U16", TARN_DTYPE_U16, 16},
    {"F16", TARN_DTYPE_F16, 16},
    {"BF16", TARN_DTYPE_BF16, 16},
    {"I32", TARN_DTYPE_I32, 32},
    {"U32", TARN_DTYPE_U32, 32},
    {"F32", TARN_DTYPE_F32, 32},
    {"C64", TARN_DTYPE_NONE, 64},
    {"F64", TARN_DTYPE_F64, 64},
    {"I64", TARN_DTYPE_I64, 64},
    {"U64", TARN_DTYPE_U64, 64},
};
enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

const tarn__model_safetensors_dtype *tarn__safetensors_dtype_find(
    const char *text) {
  for (int i = 0; i < DTYPE_COUNT; i++) {
    if (strcmp(text, dtypes[i].text) == 0) return &dtypes[i];
  }
  return NULL;
}

const tarn__model_safetensors_dtype *tarn__safetensors_dtype_of(
    tarn_dtype dtype) {
  for (int i = 0; dtype != TARN_DTYPE_NONE && i < DTYPE_COUNT; i++) {
    if (dtype == dtypes[i].dtype) return &dtypes[i];
  }
  return NULL;
}
