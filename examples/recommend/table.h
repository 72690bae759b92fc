// table.h - the vectors of all users and items, on disks, with the states of
// their optimizer.
//
//   | users | items | a row that says how far the training has come |
//
// What has to be durable together is in one table: a flush has all of it, or
// nothing.
#ifndef TARN_EXAMPLES_RECOMMEND_TABLE_H_
#define TARN_EXAMPLES_RECOMMEND_TABLE_H_

#include <tarn/tarn.h>

#include "options.h"
#include "towers.h"

typedef struct table {
  tarn_comm *comm;
  tarn_disk *disk;
  world of;
  uint32_t batch;
  size_t step;  // how far it has come
} table;

// Opens the table that there is as it was flushed last, or makes one. All
// ranks.
tarn_status table_open(table *t, tarn_comm *comm, const options *o);
tarn_status table_close(table *t);

// The row of a user, and of an item.
static inline int64_t table_user(size_t user) {
  return (int64_t)user;
}

static inline int64_t table_item(const table *t, size_t item) {
  return (int64_t)(t->of.users + item);
}

// The vectors of |count| rows, and what they learn. All ranks.
tarn_status table_gather(const table *t, const int64_t *rows, size_t count,
                         vector *out);
tarn_status table_learn(const table *t, const int64_t *rows, size_t count,
                        const vector *gradients);

// Makes durable what was learned so far. All ranks.
tarn_status table_flush(table *t, size_t step);

#endif  // TARN_EXAMPLES_RECOMMEND_TABLE_H_
