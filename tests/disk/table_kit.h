// table_kit.h - tables on disks, and twins of them in memory.
#ifndef TARN_TESTS_DISK_TABLE_KIT_H_
#define TARN_TESTS_DISK_TABLE_KIT_H_

#include "embedding/kit.h"
#include "tarn/disk.h"

enum { KIT_MEMORY = 60 << 10 };

// As the scene says, in the folder; |memory| of each rank.
static inline tarn_disk_options disk_options(const scene *s, uint64_t flags,
                                             const tarn_embedding_options *o) {
  return (tarn_disk_options){
      .struct_size = sizeof(tarn_disk_options),
      .path = in_folder("table"),
      .flags = flags,
      .dtype = s->table,
      .rows = SCENE_ROWS,
      .width = s->width,
      .optimizer = o,
      .memory = KIT_MEMORY + 24 * s->width * 3 * sizeof(float)};
}

static inline tarn_disk *open_disk(const scene *s, uint64_t flags) {
  tarn_disk *disk = NULL;
  const tarn_embedding_options o = scene_options(s);
  const tarn_disk_options options = disk_options(s, flags, &o);
  MUST_BE(tarn_disk_open(my.comm, &options, &disk), TARN_OK);
  return disk;
}

static inline void close_disk(tarn_disk *disk) {
  MUST_BE(tarn_disk_close(disk), TARN_OK);
}

// Rows |first| to |first| + |count| - 1 of |t|, on the host, by index.
typedef struct span {
  tarn_whole_rows rows;
  int64_t *indices;
  unsigned char *bytes;
  size_t size;
} span;

static inline span take_span(const tarn_whole_tensor *t, size_t first,
                             size_t count) {
  size_t row = row_bytes(t);
  span s = {.size = count * row};
  s.indices = malloc(count * sizeof *s.indices + 1);
  s.bytes = calloc(count * row + 1, 1);
  MUST(s.indices != NULL && s.bytes != NULL);
  for (size_t i = 0; i < count; i++)
    s.indices[i] = (int64_t)(first + i);
  s.rows = (tarn_whole_rows){.struct_size = sizeof s.rows,
                             .place = TARN_HOST,
                             .dense = (tarn_addr)(uintptr_t)s.bytes,
                             .indices = (tarn_addr)(uintptr_t)s.indices,
                             .index_dtype = TARN_DTYPE_I64,
                             .index_count = count};
  return s;
}

static inline void give_span(span *s) {
  free(s->indices);
  free(s->bytes);
}

// Both have the same rows. Each rank looks at all of them.
static inline void see_same(const tarn_whole_tensor *a,
                            const tarn_whole_tensor *b) {
  span x = take_span(a, 0, a->rows);
  span y = take_span(b, 0, b->rows);
  MUST_BE(tarn_whole_gather(a, &x.rows, NULL), TARN_OK);
  MUST_BE(tarn_whole_gather(b, &y.rows, NULL), TARN_OK);
  MUST(x.size == y.size && memcmp(x.bytes, y.bytes, x.size) == 0);
  give_span(&x);
  give_span(&y);
}

// The rows as the scene says; each rank writes some of all.
static inline void fill_by_scatter(const tarn_whole_tensor *t) {
  size_t first = t->rows * my.rank / my.ranks;
  size_t end = t->rows * (my.rank + 1) / my.ranks;
  span s = take_span(t, first, end - first);
  for (size_t i = first; i < end; i++)
    scene_row(now, i, s.bytes + (i - first) * row_bytes(t));
  MUST_BE(tarn_whole_scatter(t, &s.rows, NULL), TARN_OK);
  give_span(&s);
}

#endif  // TARN_TESTS_DISK_TABLE_KIT_H_
