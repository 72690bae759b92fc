// hosts_scene.h - what the parts of a benchmark over several machines share.
#ifndef TARN_BENCH_HOSTS_SCENE_H_
#define TARN_BENCH_HOSTS_SCENE_H_

#include "alltoallv.h"
#include "hosts_bench.h"
#include "place.h"
#include "whole_scene.h"

// Which are measured: distributed, and hierarchical in parts.
extern const tarn_whole_type hosts_types[HOSTS_TYPES];

typedef struct hosts_scene {
  const hosts_bench *bench;
  whole_scene whole;  // device, batches, the table of the first of the types,
                      // and what failed last
  tarn_whole *tables[HOSTS_TYPES];
  size_t machines;
  size_t machine_of[WHOLE_RANKS_MOST];
  size_t first_of[WHOLE_RANKS_MOST];  // of each machine: its first rank

  char interface[HOSTS_INTERFACE_SIZE];  // of this machine
  bool counts_wire;  // this rank is the one that looks at it
  int socket;        // between the two ends; -1 at others
  bool is_end;       // of the link that is measured
  bool is_sender;    // which of both

  const alltoallv_ops *peer;  // NULL: there is none
  alltoallv *alltoallv;
  const uint64_t *sends;  // messages that this rank has sent; NULL: not counted
  int32_t *numbers;       // indices that are drawn
  unsigned char *asked;   // a byte for each row
} hosts_scene;

// --- hosts_link.c ----------------------------------------------------------

// Finds the interfaces, and connects the two ends. Collective, as are the next
// ones: at all ranks or at none. False: |why| of the scene.
bool hosts_link_open(hosts_scene *s);
void hosts_link_close(hosts_scene *s);
bool hosts_link_measure(hosts_scene *s, hosts_link *out);

// --- hosts_wire.c ----------------------------------------------------------

// Bytes that an interface has sent, without the frames and heads of TCP. Not
// collective. False: it cannot be told.
bool hosts_wire_sent(const char *interface, uint64_t *out);

// --- hosts_work.c ----------------------------------------------------------

typedef struct hosts_job {
  tarn_whole_type type;
  hosts_op op;
  bool zipf;
  size_t row_bytes;
  size_t rows;   // of each rank
  size_t calls;  // of the same rows
} hosts_job;

// Does it, with the indices of |seed|: |out| gets gbs, us, what crossed and how
// many messages.
typedef struct hosts_sample {
  double us;
  double gbs;
  double crossed_gbs;  // of rows, to a machine from others
  double wire_bytes;
  double needed_bytes;
  double messages;
} hosts_sample;
bool hosts_job_do(hosts_scene *s, hosts_job job, uint64_t seed,
                  hosts_sample *out);

// Sees whether the rows of the last job are those that it asked for. Not
// collective.
bool hosts_job_check(hosts_scene *s, hosts_job job);

// --- hosts_passes.c --------------------------------------------------------

// All figures, by turns. False: the communicator is broken.
bool hosts_measure(hosts_scene *s, hosts_result *out);

#endif  // TARN_BENCH_HOSTS_SCENE_H_
