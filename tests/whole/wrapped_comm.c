#include "wrapped_comm.h"

static void destroy(void *self) {
  (void)self;
}

static tarn_status broadcast(void *self, size_t root, void *data, size_t size) {
  return tarn_comm_broadcast(self, root, data, size);
}

static tarn_status allgather(void *self, const void *data, size_t size,
                             void *out) {
  return tarn_comm_allgather(self, data, size, out);
}

static tarn_status alltoallv(void *self, const void *send,
                             const size_t *send_sizes,
                             const size_t *send_offsets, void *receive,
                             const size_t *receive_sizes,
                             const size_t *receive_offsets) {
  return tarn_comm_alltoallv(self, send, send_sizes, send_offsets, receive,
                             receive_sizes, receive_offsets);
}

static tarn_status split(void *self, const size_t *ranks, size_t size,
                         const tarn_comm_ops **out_ops, void **out_self) {
  (void)self, (void)ranks, (void)size;
  *out_ops = NULL;
  *out_self = NULL;
  return TARN_E_UNSUPPORTED;
}

const tarn_comm_ops wrapped_comm_ops = {.struct_size = sizeof wrapped_comm_ops,
                                        .name = "wrapped",
                                        .destroy = destroy,
                                        .broadcast = broadcast,
                                        .allgather = allgather,
                                        .alltoallv = alltoallv,
                                        .split = split};
