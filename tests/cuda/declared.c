// What the plug-in and its tests declare of the driver themselves, compared
// with the vendor's header: the type of each function, each number, the place
// of each member of each struct.
#include "support/run.h"

#ifdef TARN_CUDA_HEADERS
#include <cuda.h>
#endif

#ifndef TARN_CUDA_HEADERS

int main(void) {
  return skip_program("cuda.h",
                      "neither CUDA's toolkit nor the wheel "
                      "nvidia-cuda-runtime is here");
}

#elif CUDA_VERSION < 13000

int main(void) {
  return skip_program("cuda.h of CUDA 13", "there is an older one");
}

#else

// Behind cuda.h.
#include "cuda/api.h"
#include "cuda/more.h"
#include "declared_structs.h"

// --- functions -------------------------------------------------------------

typedef struct function_row {
  const char *name;
  bool is_same;
} function_row;

// An enum of the vendor's is an unsigned to the compiler, and compatible with
// it.
#define FUNCTION_ROW(field, cuda, hip, arguments)        \
  {#cuda, __builtin_types_compatible_p(__typeof__(cuda), \
                                       tarn__cuda_result arguments)},

static const function_row functions[] = {TARN__CU_REQUIRED(
    FUNCTION_ROW) TARN__CU_OPTIONAL(FUNCTION_ROW) TARN__CU_MORE(FUNCTION_ROW)};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

TEST(functions_have_the_vendors_types) {
  ck_assert_uint_gt(FUNCTIONS, 60);
  for (size_t i = 0; i < FUNCTIONS; i++) {
    ck_assert_msg(functions[i].is_same, "%s has another type in cuda.h",
                  functions[i].name);
  }
}

TEST(callbacks_have_the_vendors_types) {
  ck_assert(
      (__builtin_types_compatible_p(tarn__cuda_callback *, CUstreamCallback)));
  ck_assert((__builtin_types_compatible_p(tarn__cu_host_function *, CUhostFn)));
}

// --- numbers ---------------------------------------------------------------

#define assert_number(prefix, name)                                    \
  ck_assert_msg((long long)TARN__CU_##name == (long long)prefix##name, \
                "%s is %lld in cuda.h, not %lld", #prefix #name,       \
                (long long)prefix##name, (long long)TARN__CU_##name);

TEST(errors_have_the_vendors_numbers){
#define RESULT_ROW(name, value) assert_number(CUDA_, name)
    TARN__CU_RESULTS(RESULT_ROW) TARN__CU_MORE_RESULTS(RESULT_ROW)
#undef RESULT_ROW
}

TEST(flags_and_attributes_have_the_vendors_numbers){
#define NUMBER_ROW(name, value) assert_number(CU_, name)
    TARN__CU_NUMBERS(NUMBER_ROW) TARN__CU_MORE_NUMBERS(NUMBER_ROW)
#undef NUMBER_ROW
}

TEST(streams_have_the_vendors_handles) {
  ck_assert_ptr_eq(TARN__CU_STREAM_LEGACY, CU_STREAM_LEGACY);
  ck_assert_ptr_eq(TARN__CU_STREAM_PER_THREAD, CU_STREAM_PER_THREAD);
}

// --- structs ---------------------------------------------------------------

static const declared_member theirs[] = {DECLARED_MEMBERS(DECLARED_MEMBER)};
enum { MEMBERS = sizeof theirs / sizeof *theirs };

TEST(structs_have_the_vendors_layout) {
  for (size_t i = 0; i < MEMBERS; i++) {
    const declared_member *ours = &declared_members[i];
    ck_assert_str_eq(ours->name, theirs[i].name);
    ck_assert_msg(
        ours->struct_size == theirs[i].struct_size &&
            ours->offset == theirs[i].offset && ours->size == theirs[i].size,
        "%s: %zu bytes at %zu of %zu in cuda.h, not %zu at %zu of "
        "%zu",
        ours->name, theirs[i].size, theirs[i].offset, theirs[i].struct_size,
        ours->size, ours->offset, ours->struct_size);
  }
}

#endif  // TARN_CUDA_HEADERS
