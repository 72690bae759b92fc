// A table of buffers: made, taken apart, and asked.
#include "plan/csv_table.h"

#include <assert.h>

#include "base/hostmem.h"
#include "base/status.h"

tarn_status tarn__plan_csv_table_make(tarn_plan_table **out_table) {
  tarn_plan_table *table = tarn__host_alloc(sizeof *table);
  *out_table = table;
  if (table == NULL) return TARN_E_NOMEM;
  table->problem.struct_size = sizeof table->problem;
  table->budget = tarn__budget_unlimited("plan table");
  table->buffers = TARN__ARRAY_OF(tarn_plan_buffer);
  table->lines = TARN__ARRAY_OF(size_t);
  table->gaps = TARN__ARRAY_OF(tarn_plan_gap);
  table->pairs = TARN__ARRAY_OF(tarn_plan_pair);
  table->offsets = TARN__ARRAY_OF(uint64_t);
  table->arenas = TARN__ARRAY_OF(uint32_t);
  tarn__intern_init(&table->ids);
  return TARN_OK;
}

void tarn_plan_table_destroy(tarn_plan_table *table) {
  if (table == NULL) return;
  tarn__intern_deinit(&table->ids, &table->budget);
  tarn__array_free(&table->budget, &table->arenas);
  tarn__array_free(&table->budget, &table->offsets);
  tarn__array_free(&table->budget, &table->pairs);
  tarn__array_free(&table->budget, &table->gaps);
  tarn__array_free(&table->budget, &table->lines);
  tarn__array_free(&table->budget, &table->buffers);
  tarn__host_free(table->bytes, table->size);
  tarn__host_free(table, sizeof *table);
}

const tarn_plan_problem *tarn_plan_table_problem(const tarn_plan_table *table) {
  return &table->problem;
}

const char *tarn_plan_table_id(const tarn_plan_table *table, size_t index) {
  if (index >= table->problem.count) return "";
  const tarn__string *spans = table->ids.spans.items;
  const char *bytes = table->ids.bytes.items;
  assert(spans != NULL && bytes != NULL);
  return bytes + spans[index].first;
}

const uint64_t *tarn_plan_table_offsets(const tarn_plan_table *table) {
  return table->has_offsets ? table->offsets.items : NULL;
}

const uint32_t *tarn_plan_table_arenas(const tarn_plan_table *table) {
  return table->has_arenas ? table->arenas.items : NULL;
}
