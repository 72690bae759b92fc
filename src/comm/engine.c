// Communicators of an engine: over its messages, or, where all ranks are on one
// machine, by what ranks of a machine have.
#include "comm/comm.h"

static tarn_status gather_over(void *over, const void *data, size_t size,
                               void *out) {
  return tarn_comm_allgather(over, data, size, out);
}

// Owns |over|.
static tarn_status settle(tarn_comm *over, const tarn_comm_options *options,
                          tarn_comm **out_comm) {
  size_t size = tarn_comm_size(over);
  tarn_status status = TARN_E_UNSUPPORTED;
  if (size <= TARN_COMM_MOST_RANKS) {
    status = tarn_comm_meet_by(gather_over, over, tarn_comm_rank(over), size,
                               options, out_comm);
  }
  if (status == TARN_E_UNSUPPORTED) {
    *out_comm = over;
    return TARN_OK;
  }
  (void)tarn_comm_destroy(over);
  return status;
}

tarn_status tarn_comm_from_engine(const tarn_comm_ops *ops, void *self,
                                  size_t rank, size_t size,
                                  const tarn_comm_options *options,
                                  tarn_comm **out_comm) {
  tarn_comm_options known;
  tarn_comm *over = NULL;
  if (out_comm != NULL) *out_comm = NULL;
  if (ops == NULL || out_comm == NULL) {
    return tarn__fail(TARN_E_INVALID, "tarn_comm_from_engine: NULL");
  }
  tarn_status status = tarn__comm_options(options, 0, &known);
  if (status == TARN_OK) {
    status = tarn_comm_create(ops, self, rank, size, known.timeout_ms, &over);
  }
  if (status == TARN_OK) return settle(over, &known, out_comm);
  ops->destroy(self);
  return status;
}
