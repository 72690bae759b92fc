// table.h - a sorted array of pointers by number: objects by handle, regions by
// address. The caller has a lock.
#ifndef TARN_TESTS_OPENCL_STANDIN_TABLE_H_
#define TARN_TESTS_OPENCL_STANDIN_TABLE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct standin_entry {
  uint64_t key;
  void *value;
} standin_entry;

// Zero-filled: empty.
typedef struct standin_table {
  standin_entry *entries;
  size_t count;
  size_t room;
} standin_table;

// False if there is no host memory. |key| must not be in it.
bool standin_table_add(standin_table *table, uint64_t key, void *value);

// |key| must be in it.
void standin_table_remove(standin_table *table, uint64_t key);

// The value of |key|, or of the largest key below; NULL if there is none.
void *standin_table_find(const standin_table *table, uint64_t key);
void *standin_table_below(const standin_table *table, uint64_t key);

#endif  // TARN_TESTS_OPENCL_STANDIN_TABLE_H_
