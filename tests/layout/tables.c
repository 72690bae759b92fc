// The layout as one JSON document: that it is one, that its numbers are those
// of this compiler, and that asking for it costs nothing. Whether it is
// complete is the business of tests/house/layout.sh, whether a binding can use
// it that of tests/house/binding.py.
#include <stdio.h>

#include "support/faults.h"
#include "support/json_check.h"
#include "support/run.h"
#include "tarn/sim.h"
#include "tarn/tarn.h"

TEST(test_is_json_in_ascii) {
  const char *layout = tarn_layout_json();
  char keys[256];
  ck_assert(json_valid(layout));
  for (const char *c = layout; *c != 0; c++)
    ck_assert(*c >= ' ' && *c <= '~');
  ck_assert_str_eq(json_keys(layout, "", keys, sizeof keys),
                   "layout,version,byte_order,pointer_size,constants,enums,"
                   "types,callbacks,opaque,structs,functions");
}

TEST(test_is_of_this_library_and_machine) {
  const char *layout = tarn_layout_json();
  char version[64];
  snprintf(version, sizeof version, "\"%s\"", tarn_version());
  ck_assert(json_is(layout, "version", version));
  ck_assert(json_is(layout, "layout", "1"));
  ck_assert_double_eq(json_number(layout, "pointer_size"), sizeof(void *));
  const uint16_t one = 1;
  bool little = *(const unsigned char *)&one == 1;
  ck_assert(json_is(layout, "byte_order", little ? "\"little\"" : "\"big\""));
}

typedef struct known {
  const char *path;
  size_t number;
} known;

#define STRUCT_OF(type)                       \
  {"structs." #type ".size", sizeof(type)}, { \
    "structs." #type ".align", _Alignof(type) \
  }
#define FIELD_OF(type, field)                                                 \
  {"structs." #type ".fields." #field ".offset", offsetof(type, field)}, {    \
    "structs." #type ".fields." #field ".size", sizeof(((type *)NULL)->field) \
  }

// Of each form: by value, with a union, with an array, that grows.
static const known numbers[] = {
    STRUCT_OF(tarn_place),
    FIELD_OF(tarn_place, kind),
    STRUCT_OF(tarn_block),
    FIELD_OF(tarn_block, address),
    FIELD_OF(tarn_block, pointer),
    FIELD_OF(tarn_block, generation),
    STRUCT_OF(tarn_device_handle),
    FIELD_OF(tarn_device_handle, bytes),
    STRUCT_OF(tarn_model_needs),
    FIELD_OF(tarn_model_needs, diffs),
    FIELD_OF(tarn_model_needs, extra_bytes),
    STRUCT_OF(tarn_trace),
    FIELD_OF(tarn_trace, unfinished),
    STRUCT_OF(tarn_dlpack_dtype),
    FIELD_OF(tarn_dlpack_dtype, lanes),
};

TEST(test_sizes_and_offsets_are_the_compilers) {
  const char *layout = tarn_layout_json();
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    ck_assert_msg(
        json_number(layout, numbers[i].path) == (double)numbers[i].number,
        "%s is not %zu", numbers[i].path, numbers[i].number);
  }
}

TEST(test_types_and_arguments) {
  const char *layout = tarn_layout_json();
  static const char *const texts[][2] = {
      {"structs.tarn_device_handle.fields.bytes.type", "\"unsigned char[64]\""},
      {"structs.tarn_host_allocator.fields.allocate.returns", "\"void *\""},
      {"constants.TARN_COMM_NONE", "-9223372036854775808"},
      {"constants.TARN_ALL", "18446744073709551615"},
      {"enums.tarn_status.values.TARN_E_IO", "-9"},
      {"types.tarn_addr", "\"uint64_t\""},
      {"callbacks.tarn_pool_full_fn.arguments.1", "\"const tarn_pool_need *\""},
      {"functions.tarn_pool_of.returns", "\"tarn_status\""},
      {"functions.tarn_pool_of.arguments.1", "\"tarn_pool **\""},
      {"functions.tarn_pool_of.names.1", "\"out_pool\""},
      {"functions.tarn_version.arguments", "[]"},
  };
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    ck_assert_msg(json_is(layout, texts[i][0], texts[i][1]), "%s is not %s",
                  texts[i][0], texts[i][1]);
  }
}

static void ask(void *context) {
  const char **first = context;
  const char *layout = tarn_layout_json();
  if (*first == NULL) *first = layout;
  ck_assert_ptr_eq(layout, *first);
}

TEST(test_it_takes_nothing_and_cannot_fail) {
  const char *layout = NULL;
  size_t held = tarn_host_memory();
  size_t calls = faults_calls();
  ck_assert_uint_eq(faults_sweep(ask, &layout), 0);
  ck_assert_uint_eq(faults_calls(), calls);
  ck_assert_uint_eq(tarn_host_memory(), held);
}

int main(void) {
  faults_install();
  return run_tests();
}
