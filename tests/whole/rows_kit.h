// rows_kit.h - rows of wholes beside a model: every rank knows what
// all of them ask for, and so what must come of it.
#ifndef TARN_TESTS_WHOLE_ROWS_KIT_H_
#define TARN_TESTS_WHOLE_ROWS_KIT_H_

#include "base/convert.h"
#include "kit.h"
#include "support/mix.h"

// --- shapes ----------------------------------------------------------------

typedef enum action { GATHER, SCATTER, SCATTER_ADD, ACTIONS } action;

// Where in the table the indices of a rank lie. Parts are as large as each
// other where nothing else is said, and then it is also known whose rows they
// are.
typedef enum spread {
  EVERYWHERE,
  AT_THE_FRONT,  // of the first rank, most of them
  AT_ITS_OWN,
  AT_THE_NEXT,  // rank's
  ON_ONE_ROW,   // but of a scatter, which is as EVERYWHERE
  SPREADS
} spread;

typedef struct shape {
  const char *text;
  tarn_dtype table;
  tarn_dtype dense;
  tarn_dtype index;
  size_t rows;
  size_t width;             // 0: a vector
  size_t count;             // indices that a rank has at most
  size_t gap;               // bytes between dense rows
  size_t trim;              // rows and columns that are left out at each end
  const size_t *partition;  // of rows
  bool bad;                 // some indices are none, and are passed over
  spread spread;
  uint64_t seed;  // of the counts of ranks; 0: 1/2, all and none, by turns
} shape;

// --- numbers ---------------------------------------------------------------

static inline bool is_floating(tarn_dtype dtype) {
  return dtype == TARN_DTYPE_F64 || dtype == TARN_DTYPE_F32 ||
         dtype == TARN_DTYPE_F16 || dtype == TARN_DTYPE_BF16;
}

enum { NUMBERS = 256 };  // that are converted at a time

// |count| numbers from the |first| on, at most NUMBERS, to |out|.
static inline void fill_some(unsigned char *out, size_t first, size_t count,
                             tarn_dtype dtype, uint64_t seed) {
  double reals[NUMBERS];
  int64_t wholes[NUMBERS];
  for (size_t i = 0; i < count; i++) {
    uint64_t x = mix(seed, first + i);
    reals[i] = (double)(int64_t)(x % 20001) / 7 - 1000;
    wholes[i] = (int64_t)x;
  }
  if (is_floating(dtype)) {
    tarn__convert(dtype, out, TARN_DTYPE_F64, reals, count);
  } else if (dtype != TARN_DTYPE_BOOL) {
    tarn__convert(dtype, out, TARN_DTYPE_I64, wholes, count);
  } else {
    for (size_t i = 0; i < count; i++)
      out[i] = wholes[i] & 1;
  }
}

// |count| numbers, of which sums depend on the order, to |out|.
static inline void fill_numbers(unsigned char *out, size_t count,
                                tarn_dtype dtype, uint64_t seed) {
  size_t size = tarn_dtype_size(dtype);
  for (size_t i = 0; i < count; i += NUMBERS) {
    size_t now = count - i < NUMBERS ? count - i : NUMBERS;
    fill_some(out + i * size, i, now, dtype, seed);
  }
}

// --- what a rank has -------------------------------------------------------

// Dense rows and indices of one rank, as the host knows them.
typedef struct dense {
  size_t count;
  size_t stride;
  unsigned char *rows;
  size_t rows_size;
  int64_t *indices;
} dense;

static inline size_t width_of(const tarn_whole_tensor *t) {
  return t->width;
}

// Some ranks have none.
static inline size_t count_of(const shape *s, size_t rank) {
  uint64_t x = mix(s->seed, rank);
  if (s->seed == 0) return s->count * ((rank + 1) % 3) / 2;
  return x % 4 == 0 ? 0 : (size_t)(x / 4 % (s->count + 1));
}

// The |i|-th row, which no other |i| and no other rank has.
static inline size_t different_row(const shape *s, size_t rows, size_t rank,
                                   size_t i) {
  size_t mine = rows / my.ranks;
  size_t step = rows % 7919 == 0 ? 1 : 7919;
  if (s->spread == AT_ITS_OWN) return rank * mine + i;
  if (s->spread == AT_THE_NEXT) return (rank + 1) % my.ranks * mine + i;
  if (s->spread == AT_THE_FRONT) step = 1;
  return (i * my.ranks + rank) * step % rows;
}

// Any row.
static inline size_t drawn_row(const shape *s, size_t rows, size_t rank,
                               uint64_t number) {
  size_t some = rows / my.ranks > 0 ? rows / my.ranks : 1;
  switch (s->spread) {
    case AT_THE_FRONT:
      return number % some;
    case AT_ITS_OWN:
      return (rank * some + number % some) % rows;
    case AT_THE_NEXT:
      return ((rank + 1) % my.ranks * some + number % some) % rows;
    case ON_ONE_ROW:
      return rows / 2;
    case EVERYWHERE:
    case SPREADS:
      break;
  }
  return number % rows;
}

// Indices of different ranks are different for a scatter, which may leave any
// of two rows that meet.
static inline int64_t index_of(const shape *s, action a, size_t rows,
                               size_t rank, size_t i) {
  uint64_t x = mix(rank + 17, i);
  int64_t beyond = x % 3 == 0 ? (int64_t)rows : -(int64_t)(x % 3);
  if (s->bad && x % 5 == 0) return beyond;
  if (a != SCATTER) return (int64_t)drawn_row(s, rows, rank, mix(x, 3));
  return (int64_t)different_row(s, rows, rank, i);
}

static inline dense make_dense(const shape *s, const tarn_whole_tensor *t,
                               action a, size_t rank) {
  size_t element = tarn_dtype_size(s->dense);
  dense d = {.count = count_of(s, rank)};
  size_t most = t->rows / my.ranks;
  if (a == SCATTER && d.count > most) d.count = most;
  d.stride = t->width * element + s->gap;
  d.rows_size = d.count * d.stride;
  d.rows = malloc(d.rows_size + 1);
  d.indices = malloc((d.count + 1) * sizeof *d.indices);
  MUST(d.rows != NULL && d.indices != NULL);
  memset(d.rows, 0xa5, d.rows_size);
  for (size_t i = 0; i < d.count; i++) {
    d.indices[i] = index_of(s, a, t->rows, rank, i);
    fill_numbers(d.rows + i * d.stride, t->width, s->dense,
                 mix(rank + 1000, i));
  }
  return d;
}

static inline void free_dense(dense *d) {
  free(d->rows);
  free(d->indices);
}

// --- the model -------------------------------------------------------------

static inline unsigned char *fill_model(const shape *s, size_t elements) {
  unsigned char *model = malloc(elements * tarn_dtype_size(s->table) + 1);
  MUST(model != NULL);
  fill_numbers(model, elements, s->table, 5);
  return model;
}

static inline void model_row(const shape *s, action a, unsigned char *row,
                             unsigned char *d, size_t width) {
  if (a == GATHER) tarn__convert(s->dense, d, s->table, row, width);
  if (a == SCATTER) tarn__convert(s->table, row, s->dense, d, width);
  if (a == SCATTER_ADD) tarn__convert_add(s->table, row, s->dense, d, width);
}

// Does with |model|, the bytes of the whole, what a rank asks for.
static inline void model_rows(const shape *s, const tarn_whole_tensor *t,
                              action a, unsigned char *model, dense *d) {
  size_t size = tarn_dtype_size(s->table);
  for (size_t i = 0; i < d->count; i++) {
    int64_t index = d->indices[i];
    unsigned char *row = d->rows + i * d->stride;
    if (index >= 0 && (size_t)index < t->rows) {
      size_t at = t->offset + (size_t)index * t->stride;
      model_row(s, a, model + at * size, row, t->width);
    } else if (a == GATHER) {
      memset(row, 0, t->width * tarn_dtype_size(s->dense));
    }
  }
}

// What all ranks ask for; |mine| is this rank's.
static inline void model_all(const shape *s, const tarn_whole_tensor *t,
                             action a, unsigned char *model, dense *mine) {
  for (size_t r = 0; r < my.ranks; r++) {
    if (r == my.rank) {
      model_rows(s, t, a, model, mine);
    } else if (a != GATHER) {
      dense other = make_dense(s, t, a, r);
      model_rows(s, t, a, model, &other);
      free_dense(&other);
    }
  }
}

// --- places ----------------------------------------------------------------

// Each rank has two simulated devices of its own.
static inline void configure_sim(void) {
  tarn_sim_options options = {.struct_size = sizeof options,
                              .devices = 2 * my.ranks,
                              .capacity = 64 * KIT_MIB};
  MUST_BE(tarn_sim_configure(&options), TARN_OK);
}

// Of |type|, "cpu", "sim", "other sim", "real" or NULL.
static inline tarn_place open_place(const char *type, tarn_place_kind kind) {
  tarn_place place = {.device = NULL, .kind = kind};
  char name[32] = "cpu:0";
  if (type == NULL) return place;
  if (strcmp(type, "real") == 0) return open_real(kind);
  if (strcmp(type, "sim") == 0) snprintf(name, sizeof name, "sim:%zu", my.rank);
  if (strcmp(type, "other sim") == 0)
    snprintf(name, sizeof name, "sim:%zu", my.ranks + my.rank);
  MUST_BE(tarn_device_open(name, &place.device), TARN_OK);
  return place;
}

// --- a case ----------------------------------------------------------------

typedef struct scene {
  const shape *s;
  tarn_place place;  // of the whole
  tarn_place at;     // of dense rows and indices
  tarn_stream *stream;
  tarn_whole *whole;
  tarn_whole_tensor tensor;
  unsigned char *model;
  size_t model_size;
} scene;

static inline void raise_scene(scene *c, tarn_whole_type type) {
  const shape *s = c->s;
  size_t width = s->width > 0 ? s->width : 1;
  tarn_whole_part part;
  tarn_whole_table_options options = {.struct_size = sizeof options,
                                      .type = type,
                                      .place = c->place,
                                      .dtype = s->table,
                                      .rows = s->rows,
                                      .width = s->width,
                                      .partition = s->partition,
                                      .name = "a table"};
  MUST_BE(tarn_whole_table_create(my.comm, &options, &c->tensor), TARN_OK);
  c->whole = c->tensor.whole;
  if (s->trim > 0) {
    size_t columns = s->width > 0 ? s->trim : 0;
    MUST_BE(tarn_whole_tensor_sub(&c->tensor, s->trim, s->rows - s->trim,
                                  columns, width - columns, &c->tensor),
            TARN_OK);
  }
  c->model_size = s->rows * width * tarn_dtype_size(s->table);
  c->model = fill_model(s, s->rows * width);
  MUST_BE(tarn_whole_local(c->whole, &part), TARN_OK);
  poke(c->place, part.address, c->model + part.offset, part.size);
  meet_all();
}

static inline void strike_scene(scene *c) {
  free(c->model);
  MUST_BE(tarn_whole_destroy(c->whole), TARN_OK);
}

// The bytes of |out|, which is on the host, at |place|; on |stream| if that is
// of the place's device.
static inline tarn_addr upload(const scene *c, const void *bytes, size_t size) {
  tarn_addr address = 0;
  bool queued = c->stream != NULL && c->at.kind == TARN_PLACE_DEVICE &&
                tarn_stream_device(c->stream) == c->at.device;
  if (size == 0) return 0;
  MUST_BE(tarn_device_allocate(c->at, size, &address), TARN_OK);
  if (queued) {
    MUST_BE(tarn_copy_h2d(c->at.device, address, bytes, size, c->stream),
            TARN_OK);
  } else {
    poke(c->at, address, bytes, size);
  }
  return address;
}

static inline void drop(const scene *c, tarn_addr address, size_t size) {
  if (address == 0) return;
  MUST_BE(tarn_device_deallocate(c->at, address, size), TARN_OK);
}

static inline tarn_status act(action a, const tarn_whole_tensor *t,
                              const tarn_whole_rows *rows,
                              tarn_stream *stream) {
  if (a == GATHER) return tarn_whole_gather(t, rows, stream);
  if (a == SCATTER) return tarn_whole_scatter(t, rows, stream);
  return tarn_whole_scatter_add(t, rows, stream);
}

// The indices as the shape wants them.
static inline void *narrowed(const shape *s, const dense *d) {
  void *numbers = malloc((d->count + 1) * sizeof(int64_t));
  int32_t *narrow = numbers;
  MUST(numbers != NULL);
  if (s->index == TARN_DTYPE_I64) {
    memcpy(numbers, d->indices, d->count * sizeof(int64_t));
  } else {
    for (size_t i = 0; i < d->count; i++)
      narrow[i] = (int32_t)d->indices[i];
  }
  return numbers;
}

static inline void must_be_equal(const unsigned char *seen,
                                 const unsigned char *expected, size_t size) {
  if (memcmp(seen, expected, size) == 0) return;
  for (size_t i = 0; i < size; i++) {
    if (seen[i] == expected[i]) continue;
    fprintf(stderr, "byte %zu of %zu: %d, not %d\n", i, size, seen[i],
            expected[i]);
    MUST(seen[i] == expected[i]);
  }
}

// The dense rows, gaps and all, and this rank's part of the whole.
static inline void compare(const scene *c, const dense *d, tarn_addr rows) {
  tarn_whole_part part;
  size_t size = d->rows_size;
  MUST_BE(tarn_whole_local(c->whole, &part), TARN_OK);
  if (size < part.size) size = part.size;
  unsigned char *seen = malloc(size + 1);
  MUST(seen != NULL);
  peek(c->at, rows, seen, d->rows_size);
  must_be_equal(seen, d->rows, d->rows_size);
  peek(c->place, part.address, seen, part.size);
  must_be_equal(seen, c->model + part.offset, part.size);
  free(seen);
}

static inline tarn_whole_rows request_of(const scene *c, const dense *d,
                                         tarn_addr rows, tarn_addr indices) {
  bool same = c->s->table == c->s->dense;
  return (tarn_whole_rows){.struct_size = sizeof(tarn_whole_rows),
                           .place = c->at,
                           .dense = rows,
                           .dense_dtype = same ? TARN_DTYPE_NONE : c->s->dense,
                           .dense_stride = c->s->gap > 0 ? d->stride : 0,
                           .indices = indices,
                           .index_dtype = c->s->index,
                           .index_count = d->count,
                           .flags = c->s->bad ? TARN_ROWS_SKIP_BAD : 0};
}

// Does |a| in a whole that stands, and holds it against the model.
static inline void play(scene *c, action a) {
  dense d = make_dense(c->s, &c->tensor, a, my.rank);
  size_t index_size = d.count * tarn_dtype_size(c->s->index);
  void *narrow = narrowed(c->s, &d);
  tarn_addr indices = upload(c, narrow, index_size);
  tarn_addr rows = upload(c, d.rows, d.rows_size);
  tarn_whole_rows request = request_of(c, &d, rows, indices);
  MUST_BE(act(a, &c->tensor, &request, c->stream), TARN_OK);
  if (c->stream != NULL) MUST_BE(tarn_stream_synchronize(c->stream), TARN_OK);
  meet_all();
  model_all(c->s, &c->tensor, a, c->model, &d);
  compare(c, &d, rows);
  meet_all();
  drop(c, rows, d.rows_size);
  drop(c, indices, index_size);
  free(narrow);
  free_dense(&d);
}

static inline void play_all_actions(scene *c, tarn_whole_type type) {
  raise_scene(c, type);
  for (action a = GATHER; a < ACTIONS; a++)
    play(c, a);
  play(c, GATHER);
  strike_scene(c);
}

#endif  // TARN_TESTS_WHOLE_ROWS_KIT_H_
