#include "gradients.h"

#include "job/try.h"
#include "memory.h"

enum { LINE = 16 };  // numbers in a line of the cache, which parts do not share

tarn_status gradients_init(gradients *g, tarn_comm *comm, size_t count) {
  size_t ranks = tarn_comm_size(comm);
  size_t part = (count + ranks - 1) / ranks;
  share its = share_of(tarn_comm_rank(comm), ranks);
  *g = (gradients){.comm = comm, .part = (part + LINE - 1) / LINE * LINE};
  g->stride = g->part * ranks;
  TRY(memory_take("gradients", its.count * g->stride * sizeof(float),
                  &g->slices));
  TRY(memory_take("gradients", SLICES * g->part * sizeof(float), &g->received));
  return memory_take("gradients", g->stride * sizeof(float), &g->sum);
}

tarn_status gradients_end(gradients *g) {
  tarn_status status = memory_give(&g->slices);
  status = first_of(status, memory_give(&g->received));
  return first_of(status, memory_give(&g->sum));
}

float *gradients_slices(const gradients *g) {
  return g->slices.pointer;
}

// Sends slice |i| of each rank, as far as it has so many.
static tarn_status exchange(gradients *g, size_t i) {
  size_t ranks = tarn_comm_size(g->comm), part = g->part * sizeof(float);
  size_t send[SLICES], send_at[SLICES], receive[SLICES], receive_at[SLICES];
  share its = share_of(tarn_comm_rank(g->comm), ranks);
  for (size_t r = 0; r < ranks; r++) {
    share other = share_of(r, ranks);
    send[r] = i < its.count ? part : 0;
    send_at[r] = send[r] == 0 ? 0 : i * g->stride * sizeof(float) + r * part;
    receive[r] = i < other.count ? part : 0;
    receive_at[r] = receive[r] == 0 ? 0 : (other.first + i) * part;
  }
  return tarn_comm_alltoallv(g->comm, g->slices.pointer, send, send_at,
                             g->received.pointer, receive, receive_at);
}

static void add(size_t count, const float *received, float *out_mean) {
  for (size_t i = 0; i < count; i++) {
    float sum = 0;
    for (size_t slice = 0; slice < SLICES; slice++)
      sum += received[slice * count + i];
    out_mean[i] = sum / SLICES;
  }
}

tarn_status gradients_mean(gradients *g, const float **out_mean) {
  size_t ranks = tarn_comm_size(g->comm);
  size_t most = (SLICES + ranks - 1) / ranks;
  for (size_t i = 0; i < most; i++)
    TRY(exchange(g, i));
  float *sum = g->sum.pointer;
  float *own = sum + tarn_comm_rank(g->comm) * g->part;
  add(g->part, g->received.pointer, own);
  *out_mean = sum;
  return tarn_comm_allgather(g->comm, own, g->part * sizeof *own, sum);
}
