// A sorted array, searched by halves.
#include "table.h"

#include <stdlib.h>
#include <string.h>

// How many keys are at most |key|.
static size_t rank(const standin_table *table, uint64_t key) {
  size_t low = 0, high = table->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (table->entries[middle].key <= key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static bool grow(standin_table *table) {
  if (table->count < table->room) return true;
  size_t room = table->room != 0 ? 2 * table->room : 64;
  standin_entry *grown = realloc(table->entries, room * sizeof *grown);
  if (grown == NULL) return false;
  table->entries = grown;
  table->room = room;
  return true;
}

bool standin_table_add(standin_table *table, uint64_t key, void *value) {
  if (!grow(table)) return false;
  size_t at = rank(table, key);
  memmove(table->entries + at + 1, table->entries + at,
          (table->count - at) * sizeof *table->entries);
  table->entries[at] = (standin_entry){key, value};
  table->count++;
  return true;
}

void standin_table_remove(standin_table *table, uint64_t key) {
  size_t at = rank(table, key);
  memmove(table->entries + at - 1, table->entries + at,
          (table->count - at) * sizeof *table->entries);
  table->count--;
}

void *standin_table_below(const standin_table *table, uint64_t key) {
  size_t at = rank(table, key);
  return at > 0 ? table->entries[at - 1].value : NULL;
}

void *standin_table_find(const standin_table *table, uint64_t key) {
  size_t at = rank(table, key);
  if (at == 0 || table->entries[at - 1].key != key) return NULL;
  return table->entries[at - 1].value;
}
