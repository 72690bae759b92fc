// file_kit.h - a small net with all sorts of parameters, filled with patterns
// and compared with them, and a folder for its files.
#ifndef TARN_TESTS_MODEL_FILE_KIT_H_
#define TARN_TESTS_MODEL_FILE_KIT_H_

#include <stdio.h>
#include <unistd.h>

#include "sim/kit.h"
#include "support/faults.h"
#include "support/on_devices.h"
#include "tarn/model_file.h"
#include "tarn/model_run.h"

enum { BATCH = 4, COUNT = 7 };

typedef struct net {
  tarn_model *model;
  tarn_tensor *fed;           // [batch, 3]
  tarn_tensor *out;           // [batch, 2], planned
  tarn_tensor *param[COUNT];  // weight, scale, mask, none, half, small, long
  tarn_tensor *tied;          // to the first
  tarn_tensor *state;         // of the first
  tarn_step *step;
} net;

typedef struct sort {
  const char *name;
  tarn_dtype dtype;
  size_t rank;
  int64_t dims[3];
} sort;

static const sort sorts[COUNT] = {
    {"fc.weight", TARN_DTYPE_F32, 2, {5, 7, 0}},
    {"scale", TARN_DTYPE_F64, 0, {0, 0, 0}},
    {"mask", TARN_DTYPE_BOOL, 1, {3, 0, 0}},
    {"none", TARN_DTYPE_F32, 3, {2, 0, 4}},
    {"half", TARN_DTYPE_BF16, 2, {500, 300, 0}},  // beyond one piece
    {"small", TARN_DTYPE_I8, 1, {5, 0, 0}},
    {"long", TARN_DTYPE_I64, 3, {1, 2, 1}},
};
enum { PARAM_BYTES = 140 + 8 + 3 + 0 + 300000 + 5 + 16, STATE_BYTES = 140 };

static inline void describe(net *n) {
  static const int64_t in[] = {TARN_DIM_BATCH, 3};
  static const int64_t out[] = {TARN_DIM_BATCH, 2};
  const tarn_model_options options = {
      .struct_size = sizeof options, .name = "small net", .max_batch = BATCH};
  assert_ok(tarn_model_create(&options, &n->model));
  assert_ok(tarn_model_add(n->model, TARN_OUTPUT, "x", TARN_DTYPE_F32,
                           (tarn_shape){in, 2}, &n->fed));
  assert_ok(tarn_model_add(n->model, TARN_OUTPUT, "y", TARN_DTYPE_F32,
                           (tarn_shape){out, 2}, &n->out));
  for (size_t i = 0; i < COUNT; i++) {
    const sort *s = &sorts[i];
    assert_ok(tarn_model_add(n->model, TARN_PARAM, s->name, s->dtype,
                             (tarn_shape){s->dims, s->rank}, &n->param[i]));
  }
  assert_ok(tarn_model_tie(n->model, "fc.tied", n->param[0], &n->tied));
  assert_ok(tarn_model_add_state(n->model, n->param[0], "momentum",
                                 TARN_DTYPE_F32, &n->state));
  assert_ok(tarn_model_step(n->model, "fc", &n->step));
  assert_ok(tarn_step_reads(n->step, TARN_FORWARD, n->fed, TARN_DATA));
  assert_ok(tarn_step_reads(n->step, TARN_FORWARD, n->param[0], TARN_DATA));
  assert_ok(tarn_step_writes(n->step, TARN_FORWARD, n->out, TARN_DATA));
}

static inline net new_net(tarn_model_mode mode, tarn_place home) {
  net n = {0};
  describe(&n);
  const tarn_model_plan_options plan = {
      .struct_size = sizeof plan, .mode = mode, .home = home};
  assert_ok(tarn_model_plan(n.model, &plan));
  assert_ok(tarn_model_place(n.model));
  return n;
}

// --- patterns ----------------------------------------------------------------

// Of a byte of a tensor; of bool 0 or 1. |seed| 0: zeros.
static inline unsigned char byte_of(const tarn_tensor *tensor, unsigned seed,
                                    size_t i) {
  unsigned value = seed * (unsigned)(i * 7 + (i >> 8) + tensor->max_size + 3);
  return (unsigned char)(tensor->dtype == TARN_DTYPE_BOOL ? value & 1 : value);
}

static inline unsigned char *pattern_of(const tarn_tensor *tensor,
                                        unsigned seed) {
  unsigned char *bytes = malloc(tensor->max_size + 1);
  require(bytes != NULL);
  for (size_t i = 0; i < tensor->max_size; i++)
    bytes[i] = byte_of(tensor, seed, i);
  return bytes;
}

static inline void fill_tensor(tarn_tensor *tensor, unsigned seed,
                               tarn_place place) {
  tarn_access a;
  unsigned char *bytes = pattern_of(tensor, seed);
  assert_ok(tarn_synced_begin(tensor->data, 0, TARN_ALL, place,
                              TARN_WRITE_DISCARD, NULL, &a));
  if (a.pointer != NULL) {
    memcpy(a.pointer, bytes, a.size);
  } else if (a.size > 0) {
    assert_ok(tarn_copy_h2d(place.device, a.address, bytes, a.size, NULL));
  }
  assert_ok(tarn_synced_end(&a));
  free(bytes);
}

// Whether it has that pattern, as seen at |place|. What is lost has none.
static inline bool tensor_has(tarn_tensor *tensor, unsigned seed,
                              tarn_place place) {
  tarn_access a;
  unsigned char *bytes = pattern_of(tensor, seed);
  unsigned char *got = malloc(tensor->max_size + 1);
  tarn_status status =
      tarn_synced_begin(tensor->data, 0, TARN_ALL, place, TARN_READ, NULL, &a);
  require(status == TARN_OK || status == TARN_E_STATE);
  if (status == TARN_OK && a.pointer != NULL) {
    memcpy(got, a.pointer, a.size);
  } else if (status == TARN_OK && a.size > 0) {
    assert_ok(tarn_copy_d2h(place.device, got, a.address, a.size, NULL));
  }
  if (status == TARN_OK) assert_ok(tarn_synced_end(&a));
  bool same = status == TARN_OK && memcmp(got, bytes, tensor->max_size) == 0;
  free(got);
  free(bytes);
  return same;
}

// Where the host sees the buffer's newest bytes.
static inline const void *host_pointer(tarn_synced *buffer) {
  tarn_access a;
  assert_ok(
      tarn_synced_begin(buffer, 0, TARN_ALL, TARN_HOST, TARN_READ, NULL, &a));
  const void *pointer = a.pointer;
  assert_ok(tarn_synced_end(&a));
  return pointer;
}

static inline void fill_net(const net *n, unsigned seed, tarn_place place) {
  for (size_t i = 0; i < COUNT; i++)
    fill_tensor(n->param[i], seed, place);
}

static inline void expect_net(const net *n, unsigned seed, tarn_place place) {
  for (size_t i = 0; i < COUNT; i++) {
    ck_assert_msg(tensor_has(n->param[i], seed, place), "%s",
                  n->param[i]->name);
  }
}

// --- files -------------------------------------------------------------------

static char folder[64];
static char path[96];

static inline void set_up(void) {
  snprintf(folder, sizeof folder, "/tmp/tarn-model-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/net.safetensors", folder);
}

static inline void tear_down(void) {
  unlink(path);
  ck_assert_int_eq(rmdir(folder), 0);
}

// Each test has a folder of its own.
FIXTURE(set_up, tear_down);

// All bytes of the file at |path|, for free; |*out_size| may be NULL.
static inline unsigned char *read_whole(size_t *out_size) {
  FILE *file = fopen(path, "rb");
  ck_assert_ptr_nonnull(file);
  unsigned char *bytes = malloc(1 << 20);
  size_t size = fread(bytes, 1, 1 << 20, file);
  require(size < 1 << 20);
  fclose(file);
  if (out_size != NULL) *out_size = size;
  return bytes;
}

static inline void write_whole(const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  ck_assert_ptr_nonnull(file);
  ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

// How many mappings of files of the folder this process has.
static inline size_t mappings(void) {
  char line[512];
  size_t count = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  ck_assert_ptr_nonnull(maps);
  while (fgets(line, sizeof line, maps) != NULL)
    count += strstr(line, folder) != NULL;
  fclose(maps);
  return count;
}

static inline tarn_model_loaded load(const net *n, uint32_t flags) {
  tarn_model_loaded loaded = {.struct_size = sizeof loaded};
  assert_ok(tarn_model_load(n->model, path, flags, &loaded));
  return loaded;
}

// A net with pattern 2, beside a file with pattern 1.
static inline net net_beside_a_file(tarn_model_mode mode, tarn_place home) {
  net n = new_net(mode, home);
  fill_net(&n, 1, TARN_HOST);
  assert_ok(tarn_model_save(n.model, path, 0));
  fill_net(&n, 2, home);
  return n;
}

// The load is refused, and everything is as it was.
static inline void assert_refuses(const net *n, uint32_t flags,
                                  tarn_status status, const char *text) {
  tarn_model_loaded loaded = {.struct_size = sizeof loaded, .copied = 7};
  assert_status(tarn_model_load(n->model, path, flags, &loaded), status);
  assert_error_says(text);
  ck_assert_uint_eq(loaded.struct_size, sizeof loaded);
  ck_assert_uint_eq(loaded.mapped + loaded.copied + loaded.bytes, 0);
  ck_assert_uint_eq(loaded.missing + loaded.unused, 0);
  expect_net(n, 2, TARN_HOST);
  ck_assert_uint_eq(mappings(), 0);
}

// Of |n|'s parameters those with the new value; the others have the old one.
// Those that have neither are |*out_lost|.
static inline size_t count_new(const net *n, tarn_place place,
                               size_t *out_lost) {
  size_t found = 0;
  *out_lost = 0;
  for (size_t i = 0; i < COUNT; i++) {
    if (n->param[i]->max_size == 0) continue;
    if (tensor_has(n->param[i], 1, place)) {
      found++;
    } else if (!tensor_has(n->param[i], 2, place)) {
      ++*out_lost;
    }
  }
  return found;
}

// Bytes that are out in the pool of |place|.
static inline size_t live_at(tarn_place place) {
  tarn_pool *pool = NULL;
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_pool_of(place, &pool));
  assert_ok(tarn_pool_query(pool, &stats));
  return stats.live_bytes;
}

#endif  // TARN_TESTS_MODEL_FILE_KIT_H_
