// Tables above 4 GiB, with indices above 2^31. No memory is put behind them,
// which takes minutes and more than a machine of tests may have: this program
// has its own ways to put it there and to clear it, so that only what is
// touched is there.
#include <inttypes.h>

#include "kit.h"

// NOLINTBEGIN(bugprone-reserved-identifier): --wrap makes the name.
bool __wrap_tarn__os_commit_file(int fd, size_t offset, size_t size,
                                 size_t *out_huge);
void __wrap_tarn__os_collapse(void *ptr, size_t size);
void *__real_memset(void *ptr, int value, size_t size);
void *__wrap_memset(void *ptr, int value, size_t size);
// NOLINTEND(bugprone-reserved-identifier)

bool __wrap_tarn__os_commit_file(int fd, size_t offset, size_t size,
                                 size_t *out_huge) {
  (void)fd, (void)offset, (void)size;
  *out_huge = 0;
  return true;
}

void __wrap_tarn__os_collapse(void *ptr, size_t size) {
  (void)ptr, (void)size;
}

static const size_t GIB = (size_t)1 << 30;

// Pages from the kernel are zero until they are written.
void *__wrap_memset(void *ptr, int value, size_t size) {
  return size >= GIB ? ptr : __real_memset(ptr, value, size);
}

static const struct table {
  const char *text;
  const char *device;  // NULL: on the host
  size_t width;        // 0: a vector
  size_t row_bytes;
  size_t gib;
  tarn_whole_type type;
} tables[] = {
    {"continuous, 8 Gi rows of a byte", NULL, 0, 1, 8, TARN_WHOLE_CONTINUOUS},
    {"chunked, 8 Gi rows of a byte", NULL, 0, 1, 8, TARN_WHOLE_CHUNKED},
    {"continuous on cpu, 5 Gi rows of a byte", "cpu:0", 0, 1, 5,
     TARN_WHOLE_CONTINUOUS},
    {"chunked on cpu, 5 Gi rows of a byte", "cpu:0", 0, 1, 5,
     TARN_WHOLE_CHUNKED},
    {"continuous, 4 Gi rows of 16 bytes", NULL, 16, 16, 64,
     TARN_WHOLE_CONTINUOUS},
    {"distributed, 8 Gi rows of a byte", NULL, 0, 1, 8, TARN_WHOLE_DISTRIBUTED},
    {"distributed on cpu, 5 Gi rows of a byte", "cpu:0", 0, 1, 5,
     TARN_WHOLE_DISTRIBUTED},
    {"distributed, 384 Mi rows of 16 bytes", NULL, 16, 16, 6,
     TARN_WHOLE_DISTRIBUTED},
};
enum { TABLES = sizeof tables / sizeof *tables };

// --- indices ---------------------------------------------------------------

enum { SPOTS = 64, PER_SPOT = 192, COUNT = SPOTS * PER_SPOT };

// Places all over the table, close by which the rows are that are moved: at the
// ends of what numbers of 31 and 32 bits can tell among them.
static int64_t row_of(size_t i, size_t rows) {
  size_t spot = i / PER_SPOT;
  size_t first = rows / SPOTS * spot;
  if (spot == SPOTS / 4) first = ((size_t)1 << 31) - PER_SPOT / 2;
  if (spot == SPOTS / 2) first = ((size_t)1 << 32) - PER_SPOT / 2;
  if (spot == SPOTS - 1 || first + PER_SPOT > rows) first = rows - PER_SPOT;
  return (int64_t)(first + i % PER_SPOT);
}

static unsigned char value_of(int64_t row) {
  uint64_t mixed = (uint64_t)row * 0x9e3779b97f4a7c15u;
  return (unsigned char)(mixed >> 56);
}

static unsigned char dense[COUNT * 16];
static int64_t indices[COUNT];

static tarn_whole_rows rows_of(size_t begin, size_t count, size_t row_bytes) {
  return (tarn_whole_rows){
      .struct_size = sizeof(tarn_whole_rows),
      .place = TARN_HOST,
      .dense = (tarn_addr)(uintptr_t)(dense + begin * row_bytes),
      .indices = (tarn_addr)(uintptr_t)(indices + begin),
      .index_dtype = TARN_DTYPE_I64,
      .index_count = count};
}

static void fill_rows(size_t row_bytes, size_t rows) {
  for (size_t i = 0; i < COUNT; i++) {
    indices[i] = row_of(i, rows);
    memset(dense + i * row_bytes, value_of(indices[i]), row_bytes);
  }
}

static void see_rows(size_t row_bytes, unsigned times) {
  for (size_t i = 0; i < COUNT * row_bytes; i++) {
    unsigned value = times * value_of(indices[i / row_bytes]);
    MUST(dense[i] == (unsigned char)value);
  }
}

// --- moving ----------------------------------------------------------------

// Each rank scatters its share, and gathers all.
static void move(const tarn_whole_tensor *table, size_t row_bytes) {
  size_t share = COUNT / my.ranks;
  tarn_whole_rows mine = rows_of(my.rank * share, share, row_bytes);
  tarn_whole_rows all = rows_of(0, COUNT, row_bytes);
  fill_rows(row_bytes, table->rows);
  MUST_BE(tarn_whole_scatter(table, &mine, NULL), TARN_OK);
  meet_all();
  memset(dense, 0xee, sizeof dense);
  MUST_BE(tarn_whole_gather(table, &all, NULL), TARN_OK);
  see_rows(row_bytes, 1);
  meet_all();
}

// All ranks add to the rows of one place.
static void add(const tarn_whole_tensor *table, size_t row_bytes) {
  size_t some = (size_t)PER_SPOT * (SPOTS - 2);
  tarn_whole_rows rows = rows_of(some, PER_SPOT, row_bytes);
  tarn_whole_rows all = rows_of(0, COUNT, row_bytes);
  MUST_BE(tarn_whole_scatter_add(table, &rows, NULL), TARN_OK);
  meet_all();
  MUST_BE(tarn_whole_gather(table, &all, NULL), TARN_OK);
  for (size_t i = some * row_bytes; i < (some + PER_SPOT) * row_bytes; i++) {
    unsigned times = 1 + (unsigned)my.ranks;
    MUST(dense[i] == (unsigned char)(times * value_of(indices[i / row_bytes])));
  }
}

static void see_the_end(const tarn_whole_tensor *table, size_t row_bytes) {
  char text[32];
  tarn_whole_rows rows = rows_of(0, 3, row_bytes);
  indices[1] = (int64_t)table->rows;
  snprintf(text, sizeof text, "%" PRId64, indices[1]);
  MUST_BE(tarn_whole_gather(table, &rows, NULL), TARN_E_INVALID);
  MUST_SAY(text);
}

static const struct table *tested;

static void have_a_large_table(void) {
  tarn_place place = TARN_HOST;
  if (tested->device != NULL) {
    MUST_BE(tarn_device_open(tested->device, &place.device), TARN_OK);
    place.kind = TARN_PLACE_DEVICE;
  }
  tarn_whole_options options = {.struct_size = sizeof options,
                                .type = tested->type,
                                .place = place,
                                .size = tested->gib * GIB,
                                .granularity = tested->row_bytes};
  tarn_whole *whole = NULL;
  tarn_whole_tensor table;
  MUST_BE(tarn_whole_create(my.comm, &options, &whole), TARN_OK);
  MUST_BE(tarn_whole_tensor_make(whole, TARN_DTYPE_U8,
                                 options.size / tested->row_bytes,
                                 tested->width, &table),
          TARN_OK);
  move(&table, tested->row_bytes);
  add(&table, tested->row_bytes);
  see_the_end(&table, tested->row_bytes);
  MUST_BE(tarn_whole_destroy(whole), TARN_OK);
  if (place.device != NULL) MUST_BE(tarn_device_close(place.device), TARN_OK);
}

TEST_LOOP(rows_far_away, TABLES) {
  tested = &tables[_i];
  run_ranks(3, tested->text, have_a_large_table);
}
