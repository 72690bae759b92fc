// kit.h - tables of a scene, and gradients for them.
#ifndef TARN_TESTS_EMBEDDING_KIT_H_
#define TARN_TESTS_EMBEDDING_KIT_H_

#include "base/crc32c.h"
#include "comm/post_office.h"
#include "embedding/scene.h"
#include "whole/kit.h"

static const scene *now;  // set before ranks are forked
static char folder[64];
static _Thread_local char path[160];  // ranks may be threads

static inline const char *in_folder(const char *name) {
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static inline void make_folder(void) {
  snprintf(folder, sizeof folder, "/tmp/tarn-embedding-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

static inline void remove_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  ck_assert_int_eq(system(command), 0);
}

// --- tables ----------------------------------------------------------------

static inline size_t row_bytes(const tarn_whole_tensor *t) {
  return t->width * tarn_dtype_size(t->dtype);
}

// This rank's rows begin as the scene says.
static inline void fill(const tarn_whole_tensor *t, tarn_place place) {
  size_t first = 0;
  size_t count = 0;
  tarn_addr address = 0;
  size_t row = row_bytes(t);
  MUST_BE(tarn_whole_tensor_rows(t, my.rank, &first, &count), TARN_OK);
  MUST_BE(tarn_whole_tensor_local(t, &address), TARN_OK);
  unsigned char *bytes = malloc(count * row + 1);
  MUST(bytes != NULL);
  for (size_t i = 0; i < count; i++)
    scene_row(now, first + i, bytes + i * row);
  poke(place, address, bytes, count * row);
  free(bytes);
  meet_all();
}

static inline tarn_whole_tensor make(tarn_whole_type type,
                                     tarn_whole_spread spread,
                                     tarn_place place) {
  tarn_whole_tensor made;
  const tarn_whole_table_options options = {.struct_size = sizeof options,
                                            .type = type,
                                            .place = place,
                                            .dtype = now->table,
                                            .rows = SCENE_ROWS,
                                            .width = now->width,
                                            .spread = spread};
  MUST_BE(tarn_whole_table_create(my.comm, &options, &made), TARN_OK);
  fill(&made, place);
  return made;
}

// This rank's rows, without gaps between them; the caller frees them.
static inline unsigned char *copy_rows(const tarn_whole_tensor *t,
                                       tarn_place place, size_t *out_first,
                                       size_t *out_count) {
  tarn_addr address = 0;
  size_t row = row_bytes(t);
  size_t stride = t->stride * tarn_dtype_size(t->dtype);
  MUST_BE(tarn_whole_tensor_rows(t, my.rank, out_first, out_count), TARN_OK);
  MUST_BE(tarn_whole_tensor_local(t, &address), TARN_OK);
  unsigned char *bytes = malloc(*out_count * row + 1);
  MUST(bytes != NULL);
  for (size_t i = 0; i < *out_count; i++)
    peek(place, address + i * stride, bytes + i * row, row);
  return bytes;
}

// A sum over all rows, in which each rank's own are.
static inline uint64_t look_at(const tarn_whole_tensor *t, tarn_place place) {
  size_t first = 0;
  size_t count = 0;
  uint64_t sums[POST_RANKS] = {0};
  uint64_t sum = 0;
  size_t row = row_bytes(t);
  unsigned char *bytes = copy_rows(t, place, &first, &count);
  for (size_t i = 0; i < count; i++)
    sum += tarn__crc32c((uint32_t)(first + i), bytes + i * row, row) *
           (uint64_t)(2 * (first + i) + 1);
  free(bytes);
  MUST_BE(tarn_comm_allgather(my.comm, &sum, sizeof sum, sums), TARN_OK);
  sum = 0;
  for (size_t r = 0; r < my.ranks; r++)
    sum += sums[r];
  return sum;
}

// --- gradients -------------------------------------------------------------

typedef struct batch {
  tarn_whole_rows rows;
  unsigned char *dense;
  int64_t *indices;
  tarn_addr there;  // on a device
  size_t size;
  tarn_place place;
} batch;

// This rank's part of batch |n|: ranks have consecutive ones, not equally long.
static inline batch take_part(size_t n, tarn_place place) {
  size_t from = SCENE_BATCH * my.rank * my.rank / (my.ranks * my.ranks);
  size_t next = my.rank + 1;
  size_t to = SCENE_BATCH * next * next / (my.ranks * my.ranks);
  size_t row = now->width * tarn_dtype_size(now->gradients);
  batch b = {.place = place};
  b.size = (to - from) * (row + sizeof *b.indices);
  b.indices = malloc(b.size + 1);
  MUST(b.indices != NULL);
  b.dense = (unsigned char *)(b.indices + (to - from));
  for (size_t i = from; i < to; i++) {
    b.indices[i - from] = scene_index(n, i);
    scene_gradient(now, n, i, b.dense + (i - from) * row);
  }
  b.there = (tarn_addr)(uintptr_t)b.indices;
  if (place.kind == TARN_PLACE_DEVICE) {
    MUST_BE(tarn_device_allocate(place, b.size + 1, &b.there), TARN_OK);
    poke(place, b.there, b.indices, b.size);
  }
  b.rows = (tarn_whole_rows){.struct_size = sizeof b.rows,
                             .place = place,
                             .dense = b.there + (to - from) * sizeof *b.indices,
                             .dense_dtype = now->gradients,
                             .indices = b.there,
                             .index_dtype = TARN_DTYPE_I64,
                             .index_count = to - from};
  return b;
}

static inline void give_part(batch *b) {
  if (b->place.kind == TARN_PLACE_DEVICE) {
    MUST_BE(tarn_device_deallocate(b->place, b->there, b->size + 1), TARN_OK);
  }
  free(b->indices);
}

static inline void apply(tarn_embedding *e, size_t n, tarn_place place) {
  batch b = take_part(n, place);
  MUST_BE(tarn_embedding_apply(e, &b.rows, NULL), TARN_OK);
  give_part(&b);
}

#endif  // TARN_TESTS_EMBEDDING_KIT_H_
