// Tables: memory and tensor made in one call, whose blocks are the tensor's
// rows. Every shape goes over every number of ranks.
#include "kit.h"

static const ground *where;  // set before ranks are forked

typedef struct shape {
  const char *text;
  tarn_dtype dtype;
  size_t rows;
  size_t width;
} shape;

static const shape shapes[] = {
    {"16 x 5 floats", TARN_DTYPE_F32, 16, 5},
    {"80 floats", TARN_DTYPE_F32, 80, 0},
    {"15 rows", TARN_DTYPE_F16, 15, 3},
    {"a row", TARN_DTYPE_F64, 1, 7},
    {"nothing", TARN_DTYPE_U8, 0, 3},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static tarn_whole_table_options options_of(const shape *s, tarn_whole_type type,
                                           tarn_place place) {
  return (tarn_whole_table_options){
      .struct_size = sizeof(tarn_whole_table_options),
      .type = type,
      .place = place,
      .dtype = s->dtype,
      .rows = s->rows,
      .width = s->width};
}

static size_t row_bytes(const shape *s) {
  return (s->width > 0 ? s->width : 1) * tarn_dtype_size(s->dtype);
}

// --- layout ----------------------------------------------------------------

static void see_layout(const shape *s, const tarn_whole_tensor *table) {
  size_t counts[MOST_RANKS];
  size_t next = 0;
  tarn_whole_info info = {.struct_size = sizeof info};
  MUST_BE(tarn_whole_partition(s->rows, my.ranks, counts), TARN_OK);
  MUST_BE(tarn_whole_query(table->whole, &info), TARN_OK);
  MUST(info.granularity == row_bytes(s));
  MUST(info.size == s->rows * row_bytes(s));
  MUST(table->dims == (s->width > 0 ? 2 : 1));
  for (size_t r = 0; r < my.ranks; r++) {
    size_t first = 0;
    size_t count = 0;
    MUST_BE(tarn_whole_tensor_rows(table, r, &first, &count), TARN_OK);
    MUST(count == counts[r] && (count == 0 || first == next));
    next += count;
  }
  MUST(next == s->rows);
}

// Byte k of row i.
static unsigned char byte_of(size_t row, size_t k) {
  return (unsigned char)(row * 31 + k * 7 + 1);
}

static void fill_own(const shape *s, const tarn_whole_tensor *table,
                     tarn_place place) {
  unsigned char bytes[512];
  tarn_addr address = 0;
  size_t first = 0;
  size_t count = 0;
  MUST_BE(tarn_whole_tensor_rows(table, my.rank, &first, &count), TARN_OK);
  MUST_BE(tarn_whole_tensor_local(table, &address), TARN_OK);
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < row_bytes(s); k++)
      bytes[i * row_bytes(s) + k] = byte_of(first + i, k);
  poke(place, address, bytes, count * row_bytes(s));
  meet_all();
}

static void see_all_rows(const shape *s, const tarn_whole_tensor *table) {
  unsigned char bytes[512];
  int64_t indices[128];
  tarn_whole_rows rows = {.struct_size = sizeof rows,
                          .place = TARN_HOST,
                          .dense = (tarn_addr)(uintptr_t)bytes,
                          .indices = (tarn_addr)(uintptr_t)indices,
                          .index_dtype = TARN_DTYPE_I64,
                          .index_count = s->rows};
  for (size_t i = 0; i < s->rows; i++)
    indices[i] = (int64_t)(s->rows - 1 - i);
  MUST_BE(tarn_whole_gather(table, &rows, NULL), TARN_OK);
  for (size_t i = 0; i < s->rows; i++)
    for (size_t k = 0; k < row_bytes(s); k++)
      MUST(bytes[i * row_bytes(s) + k] == byte_of(s->rows - 1 - i, k));
}

static void make_tables(void) {
  tarn_place place = open_ground(where);
  for (size_t i = 0; i < (size_t)SHAPES * TYPES; i++) {
    const shape *s = &shapes[i / TYPES];
    tarn_whole_table_options o = options_of(s, type_at(i % TYPES), place);
    tarn_whole_tensor table;
    my.text = s->text;
    MUST_BE(tarn_whole_table_create(my.comm, &o, &table), TARN_OK);
    see_layout(s, &table);
    fill_own(s, &table, place);
    see_all_rows(s, &table);
    MUST_BE(tarn_whole_destroy(table.whole), TARN_OK);
  }
  close_ground(place);
}

TEST_LOOP(any_number_of_ranks, GROUNDS) {
  where = ground_at(_i);
  note_mapped("any_number_of_ranks");
  for (size_t ranks = 1; ranks <= MOST_RANKS; ranks++)
    run_ranks(ranks, where->text, make_tables);
}

static void cut_by_hand(void) {
  static const size_t uneven[] = {10, 0, 6};
  static const size_t wrong[] = {10, 0, 5};
  tarn_whole_table_options o =
      options_of(&shapes[0], TARN_WHOLE_DISTRIBUTED, TARN_HOST);
  tarn_whole_tensor table;
  size_t first = 0;
  size_t count = 0;
  o.partition = uneven;
  MUST_BE(tarn_whole_table_create(my.comm, &o, &table), TARN_OK);
  for (size_t r = 0; r < my.ranks; r++) {
    MUST_BE(tarn_whole_tensor_rows(&table, r, &first, &count), TARN_OK);
    MUST(count == uneven[r]);
  }
  MUST_BE(tarn_whole_destroy(table.whole), TARN_OK);
  o.partition = wrong;
  MUST_BE(tarn_whole_table_create(my.comm, &o, &table), TARN_E_INVALID);
  MUST_SAY("15 blocks of 20 bytes, but the whole memory has 16");
}

WHOLE_TEST(partitions_count_rows, 3, "partitions", cut_by_hand)

// --- what is refused -------------------------------------------------------

static void must_be_refused(const tarn_whole_table_options *o,
                            const char *words) {
  tarn_whole_tensor table = {.rows = 7};
  MUST_BE(tarn_whole_table_create(my.comm, o, &table), TARN_E_INVALID);
  MUST_SAY(words);
  MUST(table.whole == NULL && table.rows == 0);
}

static void ask_for_nonsense(void) {
  tarn_whole_table_options o =
      options_of(&shapes[0], TARN_WHOLE_CONTINUOUS, TARN_HOST);
  tarn_whole_tensor table;
  MUST_BE(tarn_whole_table_create(NULL, &o, &table), TARN_E_INVALID);
  MUST_BE(tarn_whole_table_create(my.comm, &o, NULL), TARN_E_INVALID);
  must_be_refused(NULL, "NULL");
  o.struct_size = 11;
  must_be_refused(&o, "struct_size is 11");
  o = options_of(&shapes[0], TARN_WHOLE_CONTINUOUS, TARN_HOST);
  o.dtype = TARN_DTYPE_NONE;
  must_be_refused(&o, "unknown dtype 0");
  o.dtype = TARN_DTYPE_F32;
  o.rows = SIZE_MAX / 8;
  must_be_refused(&o, "5 x f32 overflow");
  o.rows = 1;
  o.width = SIZE_MAX / 2;
  must_be_refused(&o, "overflow");
  o.width = 1;
  o.type = (tarn_whole_type)9;
  must_be_refused(&o, "unknown type 9");
}

TEST(nonsense) {
  run_ranks(1, "nonsense", ask_for_nonsense);
  run_ranks(2, "nonsense", ask_for_nonsense);
}

// The same bytes at all ranks, of different elements; and wrong at one alone.
static void mean_different_tables(void) {
  tarn_whole_table_options o =
      options_of(&shapes[0], TARN_WHOLE_CONTINUOUS, TARN_HOST);
  tarn_whole_tensor table;
  if (my.rank == 1) o.dtype = TARN_DTYPE_I32;
  must_be_refused(
      &o,
      "rank 1 has a table that is continuous on the host, 16 rows of 5 x i32");
  o.dtype = TARN_DTYPE_F32;
  if (my.rank == 1) o.width = 0;
  must_be_refused(&o,
                  "rank 1 has a vector that is continuous on the host, 16 x "
                  "f32, pieces of ");
  o.type = TARN_WHOLE_DISTRIBUTED;
  must_be_refused(&o, "rank 1 has a vector that is distributed on the host");
  MUST(strstr(tarn_last_error(), "pieces") == NULL);
  o = options_of(&shapes[0], TARN_WHOLE_CONTINUOUS, TARN_HOST);
  if (my.rank == 1) o.dtype = TARN_DTYPE_NONE;
  must_be_refused(&o, "rank 1: table options: unknown dtype 0");
  o.dtype = TARN_DTYPE_F32;
  MUST_BE(tarn_whole_table_create(my.comm, &o, &table), TARN_OK);
  MUST_BE(tarn_whole_destroy(table.whole), TARN_OK);
}

WHOLE_TEST(different_tables, 2, "different tables", mean_different_tables)
