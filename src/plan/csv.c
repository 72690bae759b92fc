// STUB: to be replaced.
#include "base/status.h"
#include "tarn/plan_csv.h"

tarn_status tarn_plan_table_read(const char *path,
                                 const tarn_plan_csv_options *options,
                                 tarn_plan_table **out_table) {
  (void)path, (void)options;
  *out_table = NULL;
  return tarn__fail(TARN_E_UNSUPPORTED, "plan csv: not built yet");
}
void tarn_plan_table_destroy(tarn_plan_table *table) {
  (void)table;
}
const tarn_plan_problem *tarn_plan_table_problem(const tarn_plan_table *t) {
  (void)t;
  return NULL;
}
const char *tarn_plan_table_id(const tarn_plan_table *t, size_t index) {
  (void)t, (void)index;
  return "";
}
const uint64_t *tarn_plan_table_offsets(const tarn_plan_table *t) {
  (void)t;
  return NULL;
}
tarn_status tarn_plan_table_write(const tarn_plan_table *t,
                                  const uint64_t *offsets,
                                  const uint32_t *arenas, const char *path) {
  (void)t, (void)offsets, (void)arenas, (void)path;
  return tarn__fail(TARN_E_UNSUPPORTED, "plan csv: not built yet");
}
