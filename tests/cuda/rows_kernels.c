// The kernels for rows, as rows_plan.c launches them, against the library's own
// loops. They run as functions of the host (kernels/shim.h): nothing here says
// anything of a GPU but that the kernels' arithmetic is right.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/convert.h"
#include "common/rows.h"
#include "cuda/rows_plan.h"
#include "cuda/standin.h"
#include "support/effort.h"
#include "support/run.h"

enum {
  TABLE_ROOM = 1 << 20,
  DENSE_ROOM = 1 << 20,
  INDICES_MAX = 40000,
  INDEX_ROOM = (INDICES_MAX + 1) * 8,
  CHUNKS_MAX = 700,  // more than two launches have
  UNITS = 3,         // multiprocessors
  TEXT_SIZE = 160,
  PERIOD = 65521,
  ROUNDS = EFFORT(1000, 150),
};

extern const tarn_standin_kernel tarn_standin_kernels[];

typedef struct shape {
  tarn_dtype table;
  tarn_dtype dense;
  size_t width;
  size_t table_count;
  size_t index_count;
  size_t table_gap;  // bytes between rows
  size_t dense_gap;
  size_t table_shift;  // of addresses, from the beginning of a line on
  size_t dense_shift;
  size_t index_shift;
  size_t offset;  // bytes before row 0
  size_t chunks;  // 0: one
  size_t meet;    // rows among which indices are; 0: all
  uint32_t flags;
  bool narrow;  // i32 indices
} shape;

// Table and dense rows, once for the kernels and once for the model.
typedef struct scene {
  unsigned char *tables[2];
  unsigned char *denses[2];
  unsigned char *indices;
  tarn_addr chunks[2][CHUNKS_MAX];
  size_t offsets[CHUNKS_MAX + 1];
  tarn_rows rows[2];
  tarn__cuda_fault fault;
  size_t launches;
} scene;

static uint64_t seed = 1;

static size_t draw(size_t below) {
  seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (size_t)(seed >> 33) % below;
}

static tarn_addr address_of(const void *ptr) {
  return (tarn_addr)(uintptr_t)ptr;
}

// --- scenes ----------------------------------------------------------------

// Any bits; or those of no NaN, of which a sum may keep either. The same again
// and again, a prime of bytes apart.
static void fill(unsigned char *bytes, size_t size, bool is_number) {
  unsigned char mask = is_number ? 0x7b : 0xff;
  for (size_t i = 0; i < PERIOD; i++)
    bytes[i] = (unsigned char)draw(256) & mask;
  for (size_t done = PERIOD; done < size; done *= 2)
    memcpy(bytes + done, bytes, done < size - done ? done : size - done);
}

static void fill_both(unsigned char *blocks[2], size_t size, size_t room,
                      bool is_number) {
  ck_assert_uint_le(size, room);
  for (int i = 0; i < 2; i++) {
    blocks[i] = aligned_alloc(64, room);
    ck_assert_ptr_nonnull(blocks[i]);
  }
  fill(blocks[0], room, is_number);
  memcpy(blocks[1], blocks[0], room);
}

// Whole rows in each chunk, no rows in some. What lies between two is of no
// chunk.
static void lay_chunks(scene *s, const shape *c) {
  size_t stride = s->rows[0].table_stride;
  size_t count = c->chunks == 0 ? 1 : c->chunks;
  size_t at = c->table_shift;
  size_t left = c->table_count;
  for (size_t i = 0; i < count; i++) {
    size_t most = 2 * c->table_count / count + 2;
    size_t rows = i + 1 == count ? left : draw(most < left ? most : left + 1);
    size_t size = rows * stride + (i == 0 ? c->offset : 0);
    for (int k = 0; k < 2; k++)
      s->chunks[k][i] = address_of(s->tables[k] + at);
    s->offsets[i + 1] = s->offsets[i] + size;
    at += size + (c->chunks > 1 ? draw(3) * 64 : 0);
    left -= rows;
  }
  ck_assert_uint_le(at, TABLE_ROOM);
}

static void put_index(scene *s, size_t position, int64_t index) {
  if (s->rows[0].index_dtype == TARN_DTYPE_I32) {
    int32_t narrow = (int32_t)index;
    memcpy(s->indices + position * sizeof narrow, &narrow, sizeof narrow);
  } else {
    memcpy(s->indices + position * sizeof index, &index, sizeof index);
  }
}

static int64_t draw_bad(const shape *c) {
  static const int64_t far[] = {INT64_MIN, INT64_MAX, -1};
  size_t which = draw(6);
  if (which >= 3) return (int64_t)(c->table_count + which - 3);
  return c->narrow ? INT32_MIN + (int64_t)which : far[which];
}

static void draw_indices(scene *s, const shape *c) {
  size_t among =
      c->meet != 0 && c->meet < c->table_count ? c->meet : c->table_count;
  bool skips = (c->flags & TARN_ROWS_SKIP_BAD) != 0;
  for (size_t i = 0; i < c->index_count; i++) {
    bool bad = c->table_count == 0 || (skips && draw(5) == 0);
    put_index(s, i, bad ? draw_bad(c) : (int64_t)draw(among));
  }
}

static void set_up(scene *s, const shape *c, bool adds) {
  size_t t_row = c->width * tarn_dtype_size(c->table) + c->table_gap;
  size_t d_row = c->width * tarn_dtype_size(c->dense) + c->dense_gap;
  memset(s, 0, sizeof *s);
  fill_both(s->tables, c->table_count * t_row, TABLE_ROOM, adds);
  fill_both(s->denses, c->index_count * d_row, DENSE_ROOM, adds);
  s->indices = malloc(INDEX_ROOM);
  ck_assert_ptr_nonnull(s->indices);
  s->indices += c->index_shift;
  for (int i = 0; i < 2; i++) {
    const tarn_rows given = {
        .struct_size = sizeof given,
        .table = {s->chunks[i], s->offsets, c->chunks == 0 ? 1 : c->chunks},
        .table_dtype = c->table,
        .table_offset = c->offset,
        .table_stride = t_row,
        .table_count = c->table_count,
        .width = c->width,
        .dense = address_of(s->denses[i] + c->dense_shift),
        .dense_dtype = c->dense,
        .dense_stride = d_row,
        .indices = address_of(s->indices),
        .index_dtype = c->narrow ? TARN_DTYPE_I32 : TARN_DTYPE_I64,
        .index_count = c->index_count,
        .flags = c->flags,
    };
    s->rows[i] = given;
  }
  lay_chunks(s, c);
  draw_indices(s, c);
}

static void tear_down(scene *s, const shape *c) {
  for (int i = 0; i < 2; i++) {
    free(s->tables[i]);
    free(s->denses[i]);
  }
  free(s->indices - c->index_shift);
}

// --- running ---------------------------------------------------------------

static const tarn_standin_kernel *find_kernel(unsigned number, bool many) {
#define NAME(name) "tarn_" #name,
  static const char *const names[] = {TARN__CUDA_KERNELS(NAME)};
#undef NAME
  char name[64];
  snprintf(name, sizeof name, "%s%s", names[number], many ? "_many" : "");
  const tarn_standin_kernel *k = tarn_standin_kernels;
  while (k->name != NULL && strcmp(k->name, name) != 0)
    k++;
  ck_assert_ptr_nonnull(k->name);
  return k;
}

static unsigned run_kernel(void *context, const tarn__cuda_launch *l) {
  scene *s = context;
  const tarn_standin_launch launch = {.grid = {l->blocks, 1, 1},
                                      .block = {l->threads, 1, 1},
                                      .arguments = l->arguments};
  ck_assert_uint_gt(l->blocks, 0);
  s->launches++;
  return find_kernel(l->kernel, l->many)->function(&launch);
}

// The text of the fault that kernels noted; "" if there is none.
static void run_kernels(scene *s, tarn__rows_action action, char *text) {
  tarn_rows rows;
  ck_assert_int_eq(tarn__rows_check(&s->rows[0], &rows), TARN_OK);
  ck_assert_uint_eq(
      tarn__cuda_rows_plan(action, &rows, UNITS, address_of(&s->fault), 7,
                           run_kernel, s),
      0);
  text[0] = '\0';
  if (s->fault.serial == 0) return;
  ck_assert_uint_eq(s->fault.serial, 7);
  ck_assert_uint_eq(s->fault.count, rows.table_count);
  tarn__rows_say_bad(&rows, s->fault.index, s->fault.position, text, TEXT_SIZE);
}

static void run_model(scene *s, tarn__rows_action action, char *text) {
  tarn_rows rows;
  ck_assert_int_eq(tarn__rows_check(&s->rows[1], &rows), TARN_OK);
  (void)!tarn__rows_run(action, &rows, NULL, NULL, text, TEXT_SIZE);
}

static void expect_same(unsigned char *const blocks[2], size_t room,
                        const char *what, size_t round) {
  if (memcmp(blocks[0], blocks[1], room) == 0) return;
  for (size_t i = 0; i < room; i++) {
    ck_assert_msg(blocks[0][i] == blocks[1][i],
                  "round %zu: byte %zu of the %s is 0x%02x, not 0x%02x", round,
                  i, what, blocks[0][i], blocks[1][i]);
  }
}

static void run_both(scene *s, tarn__rows_action action, size_t round) {
  char text[TEXT_SIZE];
  char wanted[TEXT_SIZE];
  run_kernels(s, action, text);
  run_model(s, action, wanted);
  ck_assert_msg(strcmp(text, wanted) == 0, "round %zu: '%s', not '%s'", round,
                text, wanted);
  if (wanted[0] != '\0') return;
  expect_same(s->tables, TABLE_ROOM, "table", round);
  expect_same(s->denses, DENSE_ROOM, "dense rows", round);
}

// --- shapes ----------------------------------------------------------------

static tarn_dtype draw_dtype(void) {
  return (tarn_dtype)(TARN_DTYPE_F64 + draw(TARN_DTYPE_BOOL));
}

static tarn_dtype draw_partner(tarn_dtype of) {
  tarn_dtype partner = of;
  if (draw(2) == 0) return of;
  do {
    partner = draw_dtype();
  } while (!tarn__convert_is_possible(partner, of));
  return partner;
}

static size_t draw_shift(void) {
  static const size_t shifts[] = {0, 0, 0, 1, 2, 4, 8, 16, 5};
  return shifts[draw(sizeof shifts / sizeof *shifts)];
}

static size_t draw_width(void) {
  static const size_t widths[] = {0, 1, 4, 16, 64, 128, 256, 600};
  return draw(2) == 0 ? draw(70) : widths[draw(8)];
}

// As many of the first as have room; at least one.
static size_t fit(size_t count, size_t room, size_t row) {
  size_t most = row == 0 ? count : room / row;
  return count < most ? count : most;
}

static void draw_shape(shape *c) {
  c->table = draw_dtype();
  c->dense = draw_partner(c->table);
  c->width = draw_width();
  c->table_gap = draw_shift();
  c->dense_gap = draw_shift();
  c->table_shift = draw_shift();
  c->dense_shift = draw_shift();
  c->index_shift = draw(4) == 0 ? draw(8) : 0;
  c->offset = draw_shift();
  c->chunks = draw(2) == 0 ? 0 : 1 + draw(draw(4) == 0 ? CHUNKS_MAX : 9);
  c->meet = draw(2) == 0 ? 0 : 1 + draw(20);
  c->flags = draw(2) == 0 ? 0 : (uint32_t)draw(4);
  c->narrow = draw(2) == 0;
  size_t room = TABLE_ROOM - CHUNKS_MAX * 128 - 128;
  c->table_count =
      fit(draw(8) == 0 ? draw(3) : draw(900), room, c->width * 8 + 16);
  c->index_count = fit(draw(30) == 0 ? INDICES_MAX : 1 + draw(600),
                       DENSE_ROOM - 128, c->width * 8 + 16);
}

static tarn__rows_action draw_action(tarn_dtype table) {
  size_t actions = tarn__convert_can_add(table) ? 3 : 2;
  return (tarn__rows_action)draw(actions);
}

TEST(any_rows_are_as_the_library_moves_them) {
  size_t launches[3] = {0};
  for (size_t i = 0; i < ROUNDS; i++) {
    shape c = {.width = 0};
    scene s;
    draw_shape(&c);
    if (c.table_count == 0) c.flags |= TARN_ROWS_SKIP_BAD;
    tarn__rows_action action = draw_action(c.table);
    set_up(&s, &c, action == TARN__ROWS_SCATTER_ADD);
    run_both(&s, action, i);
    launches[s.launches < 2 ? s.launches : 2]++;
    tear_down(&s, &c);
  }
  ck_assert_uint_eq(launches[0], 0);
  ck_assert_uint_gt(launches[1], 0);
  ck_assert_uint_gt(launches[2], 0);  // the chunks of several
}

// All elements of 16 bits, and many of the others, among them each kind of NaN,
// infinity and subnormal.
TEST_LOOP(every_pair_of_dtypes, TARN_DTYPE_BOOL *TARN_DTYPE_BOOL) {
  tarn_dtype table = (tarn_dtype)(1 + _i / TARN_DTYPE_BOOL);
  tarn_dtype dense = (tarn_dtype)(1 + _i % TARN_DTYPE_BOOL);
  if (!tarn__convert_is_possible(table, dense)) return;
  for (int action = 0; action < 2; action++) {
    shape c = {.table = table,
               .dense = dense,
               .width = 256,
               .table_count = 256,
               .index_count = 256};
    scene s;
    set_up(&s, &c, false);
    for (size_t i = 0; i < c.index_count; i++)
      put_index(&s, i, (int64_t)i);
    for (uint32_t i = 0; i < 65536; i++) {
      uint16_t half = (uint16_t)i;
      for (int k = 0; k < 2 && tarn_dtype_size(table) == 2; k++)
        memcpy(s.tables[k] + 2 * (size_t)i, &half, 2);
      for (int k = 0; k < 2 && tarn_dtype_size(dense) == 2; k++)
        memcpy(s.denses[k] + 2 * (size_t)i, &half, 2);
    }
    run_both(&s, (tarn__rows_action)action, (size_t)_i);
    tear_down(&s, &c);
  }
}

// Floats near the borders of the ranges of the small types.
TEST(floats_at_the_borders) {
  static const tarn_dtype small[] = {TARN_DTYPE_F16, TARN_DTYPE_BF16,
                                     TARN_DTYPE_F32};
  for (size_t k = 0; k < 3; k++) {
    shape c = {.table = TARN_DTYPE_F64,
               .dense = small[k],
               .width = 128,
               .table_count = 400,
               .index_count = 400};
    scene s;
    set_up(&s, &c, false);
    for (size_t i = 0; i < c.table_count * c.width; i++) {
      uint64_t exponent = 1023 - 160 + draw(320);
      uint64_t bits = exponent << 52 | (uint64_t)draw(2) << 63;
      uint64_t digits = (uint64_t)draw(1u << 30) << 22;
      bits |= draw(2) == 0 ? digits >> draw(40) : digits & ~UINT64_C(0) << 38;
      if (draw(4) == 0) bits ^= 1;
      for (int side = 0; side < 2; side++)
        memcpy(s.tables[side] + 8 * i, &bits, 8);
    }
    run_both(&s, TARN__ROWS_GATHER, k);
    tear_down(&s, &c);
  }
}

// --- far away --------------------------------------------------------------

// Rows on either side of 4 GiB, and of 2^32 elements.
TEST(a_table_of_more_than_4_gib) {
  enum { ROW = 24, PLACES = 4 };
  const size_t size = (size_t)5 << 30;
  const uint64_t last = size / ROW - 1;
  const uint64_t at[PLACES] = {0, ((uint64_t)4 << 30) / ROW, last / 2, last};
  unsigned char *table =
      mmap(NULL, size, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  unsigned char dense[PLACES][ROW];
  const tarn_addr chunk = address_of(table);
  const size_t offsets[] = {0, size};
  const tarn_rows given = {.struct_size = sizeof given,
                           .table = {&chunk, offsets, 1},
                           .table_dtype = TARN_DTYPE_U8,
                           .table_count = last + 1,
                           .width = ROW,
                           .dense = address_of(dense),
                           .dense_dtype = TARN_DTYPE_U8,
                           .indices = address_of(at),
                           .index_dtype = TARN_DTYPE_I64,
                           .index_count = PLACES};
  scene s = {.launches = 0};
  tarn_rows rows;
  ck_assert_ptr_ne(table, MAP_FAILED);
  ck_assert_int_eq(tarn__rows_check(&given, &rows), TARN_OK);
  for (int action = 1; action >= 0; action--) {
    for (size_t i = 0; i < sizeof dense; i++)
      ((unsigned char *)dense)[i] = action != 0 ? (unsigned char)(i + 1) : 0;
    ck_assert_uint_eq(
        tarn__cuda_rows_plan((tarn__rows_action)action, &rows, UNITS,
                             address_of(&s.fault), 7, run_kernel, &s),
        0);
  }
  for (size_t i = 0; i < PLACES; i++) {
    for (size_t k = 0; k < ROW; k++) {
      ck_assert_uint_eq(table[at[i] * ROW + k], i * ROW + k + 1);
      ck_assert_uint_eq(dense[i][k], i * ROW + k + 1);
    }
  }
  ck_assert_uint_eq(s.fault.serial, 0);
  munmap(table, size);
}

// --- bad indices -----------------------------------------------------------

// Of several the first is told, whoever finds it.
TEST_LOOP(the_lowest_bad_index_is_told, 3 * 40) {
  tarn__rows_action action = (tarn__rows_action)(_i % 3);
  shape c = {.table = TARN_DTYPE_F32,
             .dense = TARN_DTYPE_F32,
             .width = 1 + draw(200),
             .table_count = 60,
             .index_count = 1000,
             .chunks = draw(2) * 5,
             .narrow = draw(2) == 0};
  scene s;
  seed += (uint64_t)_i;
  set_up(&s, &c, true);
  for (size_t bad = 1 + draw(30); bad != 0; bad--)
    put_index(&s, draw(c.index_count), draw_bad(&c));
  run_both(&s, action, (size_t)_i);
  ck_assert_uint_eq(s.fault.serial, 7);
  tear_down(&s, &c);
}

TEST_LOOP(a_row_in_two_chunks_is_told, 3) {
  shape c = {.table = TARN_DTYPE_I32,
             .dense = TARN_DTYPE_I32,
             .width = 8,
             .table_count = 40,
             .index_count = 100,
             .chunks = 4,
             .flags = TARN_ROWS_SKIP_BAD};
  scene s;
  set_up(&s, &c, true);
  for (size_t i = 0; i < c.index_count; i++)
    put_index(&s, i, i % 3 == 0 ? -1 : 3);
  put_index(&s, 61, 20);
  const size_t row = s.rows[0].table_stride;
  s.offsets[1] = 10 * row;
  s.offsets[2] = 20 * row + 4;  // within row 20
  s.offsets[3] = 30 * row;
  run_both(&s, (tarn__rows_action)_i, (size_t)_i);
  ck_assert_uint_eq(s.fault.serial, 7);
  ck_assert_uint_eq(s.fault.position, 61);
  ck_assert_int_eq(s.fault.index, 20);
  tear_down(&s, &c);
}

// What an earlier call has noted stays, and so does what this one has noted
// further in front.
TEST(a_fault_of_an_earlier_call_stays) {
  shape c = {.table = TARN_DTYPE_F32,
             .dense = TARN_DTYPE_F32,
             .width = 4,
             .table_count = 5,
             .index_count = 9};
  scene s;
  tarn_rows rows;
  set_up(&s, &c, true);
  put_index(&s, 6, 99);
  ck_assert_int_eq(tarn__rows_check(&s.rows[0], &rows), TARN_OK);
  s.fault = (tarn__cuda_fault){.serial = 3, .position = 8, .claim = ~8ull};
  ck_assert_uint_eq(
      tarn__cuda_rows_plan(TARN__ROWS_GATHER, &rows, UNITS,
                           address_of(&s.fault), 7, run_kernel, &s),
      0);
  ck_assert_uint_eq(s.fault.serial, 3);
  ck_assert_uint_eq(s.fault.position, 8);
  s.fault.serial = 7;
  ck_assert_uint_eq(
      tarn__cuda_rows_plan(TARN__ROWS_GATHER, &rows, UNITS,
                           address_of(&s.fault), 7, run_kernel, &s),
      0);
  ck_assert_uint_eq(s.fault.serial, 7);
  ck_assert_uint_eq(s.fault.position, 6);
  ck_assert_int_eq(s.fault.index, 99);
  ck_assert_uint_eq(s.fault.count, 5);
  tear_down(&s, &c);
}

// --- launches --------------------------------------------------------------

static unsigned refuse(void *context, const tarn__cuda_launch *l) {
  (void)l;
  (*(size_t *)context)++;
  return 719;
}

TEST(an_error_ends_the_launches) {
  shape c = {.table = TARN_DTYPE_F32,
             .dense = TARN_DTYPE_F32,
             .width = 4,
             .table_count = CHUNKS_MAX,
             .index_count = 9,
             .chunks = CHUNKS_MAX};
  scene s;
  tarn_rows rows;
  size_t launches = 0;
  set_up(&s, &c, true);
  for (size_t i = 0; i <= CHUNKS_MAX; i++)
    s.offsets[i] = i * s.rows[0].table_stride;
  ck_assert_int_eq(tarn__rows_check(&s.rows[0], &rows), TARN_OK);
  ck_assert_uint_eq(tarn__cuda_rows_plan(TARN__ROWS_GATHER, &rows, UNITS, 0, 7,
                                         refuse, &launches),
                    719);
  ck_assert_uint_eq(launches, 1);
  rows.index_count = 0;
  ck_assert_uint_eq(tarn__cuda_rows_plan(TARN__ROWS_GATHER, &rows, UNITS, 0, 7,
                                         refuse, &launches),
                    0);
  ck_assert_uint_eq(launches, 1);  // none for no rows
  tear_down(&s, &c);
}
