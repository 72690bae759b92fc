// On the disk all rows begin as zeros, of which vectors cannot learn. So what a
// vector begins with is small numbers that follow from its row, and the table
// has what they have learned since. That is how a table that is larger than
// memory needs no first pass over all of it.
#include "table.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "job/try.h"
#include "nets/random.h"

enum {
  STATES = 1,  // of ADAGRAD, as wide as a row
  RECORD = (1 + STATES) * sizeof(vector),
  TIMES_MEMORY = 4,
};

static const float rate = 0.2f;
static const float beginning = 0.1f;

// --- what it says of itself --------------------------------------------------

// In place of the elements of the last row.
typedef struct note {
  uint32_t step;
  uint32_t batch;  // 0: nothing was flushed yet
  uint32_t users;
  uint32_t seed;
} note;

static tarn_whole_rows rows_of(const void *dense, const int64_t *rows,
                               size_t count) {
  return (tarn_whole_rows){.struct_size = sizeof(tarn_whole_rows),
                           .dense = tarn_addr_of(dense),
                           .indices = tarn_addr_of(rows),
                           .index_dtype = TARN_DTYPE_I64,
                           .index_count = count};
}

static int64_t last_row(const table *t) {
  return (int64_t)(t->of.users + t->of.items);
}

static tarn_status check_note(const table *t, const note *n) {
  if (n->batch == 0 || (n->batch == t->batch && n->users == t->of.users &&
                        n->seed == t->of.seed)) {
    return TARN_OK;
  }
  char text[160];
  snprintf(text, sizeof text,
           "the table was begun with --users %u --batch %u --seed %u; --new "
           "begins another one",
           (unsigned)n->users, (unsigned)n->batch, (unsigned)n->seed);
  return tarn_fail(TARN_E_INVALID, text);
}

static tarn_status read_note(table *t) {
  vector row;
  note n;
  int64_t last = last_row(t);
  tarn_whole_tensor tensor = tarn_disk_table(t->disk);
  tarn_whole_rows rows = rows_of(&row, &last, 1);
  TRY(tarn_whole_gather(&tensor, &rows, NULL));
  memcpy(&n, &row, sizeof n);
  TRY(check_note(t, &n));
  t->step = n.step;
  return TARN_OK;
}

// By rank 0.
static tarn_status write_note(const table *t) {
  vector row = {{0}};
  const note n = {.step = (uint32_t)t->step,
                  .batch = t->batch,
                  .users = (uint32_t)t->of.users,
                  .seed = (uint32_t)t->of.seed};
  int64_t last = last_row(t);
  tarn_whole_tensor tensor = tarn_disk_table(t->disk);
  tarn_whole_rows rows = rows_of(&row, &last, tarn_comm_rank(t->comm) == 0);
  memcpy(&row, &n, sizeof n);
  return tarn_whole_scatter(&tensor, &rows, NULL);
}

// --- open and close ----------------------------------------------------------

// Whether any rank has a file of the table.
static tarn_status find(const table *t, const char *path, bool *out_any) {
  char file[OPTIONS_PATH_SIZE + 64];
  bool all[OPTIONS_MOST_RANKS];
  size_t ranks = tarn_comm_size(t->comm);
  snprintf(file, sizeof file, "%s_part_%zu_of_%zu", path,
           tarn_comm_rank(t->comm), ranks);
  bool own = access(file, F_OK) == 0;
  TRY(tarn_comm_allgather(t->comm, &own, sizeof own, all));
  *out_any = false;
  for (size_t r = 0; r < ranks; r++)
    *out_any = *out_any || all[r];
  return TARN_OK;
}

// Each rank has a quarter of its part as memory.
static tarn_status open_disk(table *t, const options *o, bool make) {
  tarn_embedding_options adagrad;
  size_t rows = o->users + o->items + 1;
  size_t part = rows / tarn_comm_size(t->comm) * RECORD;
  TRY(tarn_embedding_defaults(TARN_OPTIMIZER_ADAGRAD, &adagrad));
  adagrad.learning_rate = rate;
  const tarn_disk_options of = {.struct_size = sizeof of,
                                .path = o->path,
                                .flags = make ? TARN_DISK_CREATE : 0,
                                .dtype = TARN_DTYPE_F32,
                                .rows = rows,
                                .width = WIDTH,
                                .optimizer = &adagrad,
                                .memory = part / TIMES_MEMORY};
  return tarn_disk_open(t->comm, &of, &t->disk);
}

tarn_status table_open(table *t, tarn_comm *comm, const options *o) {
  bool any = false;
  *t = (table){.comm = comm,
               .of = {o->users, o->items, o->seed},
               .batch = (uint32_t)o->batch};
  TRY(find(t, o->path, &any));
  TRY(open_disk(t, o, !any || o->anew));
  return read_note(t);
}

tarn_status table_close(table *t) {
  return tarn_disk_close(t->disk);
}

// --- rows --------------------------------------------------------------------

static void add_beginning(const table *t, int64_t row, vector *io) {
  net_random random = {t->of.seed + (uint64_t)row * 0xd1342543de82ef95};
  for (size_t i = 0; i < WIDTH; i++)
    io->at[i] += beginning * (float)net_random_bell(&random);
}

tarn_status table_gather(const table *t, const int64_t *rows, size_t count,
                         vector *out) {
  tarn_whole_tensor tensor = tarn_disk_table(t->disk);
  const tarn_whole_rows wanted = rows_of(out, rows, count);
  TRY(tarn_whole_gather(&tensor, &wanted, NULL));
  for (size_t i = 0; i < count; i++)
    add_beginning(t, rows[i], &out[i]);
  return TARN_OK;
}

tarn_status table_learn(const table *t, const int64_t *rows, size_t count,
                        const vector *gradients) {
  const tarn_whole_rows named = rows_of(gradients, rows, count);
  return tarn_embedding_apply(tarn_disk_embedding(t->disk), &named, NULL);
}

tarn_status table_flush(table *t, size_t step) {
  t->step = step;
  TRY(write_note(t));
  return tarn_disk_flush(t->disk);
}
