// STUB: finds nothing, to be replaced.
#include "plan/search.h"

#include "base/hostmem.h"

struct tarn__plan_search {
  const tarn__plan_instance *in;
};

tarn_status tarn__plan_search_create(const tarn__plan_instance *instance,
                                     size_t table_size,
                                     tarn__plan_search **out_search) {
  (void)table_size;
  *out_search = tarn__host_alloc(sizeof **out_search);
  if (*out_search == NULL) return TARN_E_NOMEM;
  (*out_search)->in = instance;
  return TARN_OK;
}

void tarn__plan_search_destroy(tarn__plan_search *search) {
  tarn__host_free(search, sizeof *search);
}

tarn_status tarn__plan_search_run(tarn__plan_search *search,
                                  const tarn__plan_run *run,
                                  uint64_t *out_offsets,
                                  tarn__plan_outcome *out,
                                  uint64_t *out_nodes) {
  (void)search, (void)run, (void)out_offsets;
  *out = TARN__PLAN_STOPPED;
  *out_nodes = run->node_limit;
  return TARN_OK;
}
