// hosts_bench.h - rows of whole memory gathered over several machines, beside
// the link between them and beside MPI_Alltoallv, all in one run.
//
// `tarn bench whole --hosts --help` tells what is measured. The ranks are a
// launcher's, and all of them call the same functions.
#ifndef TARN_BENCH_HOSTS_BENCH_H_
#define TARN_BENCH_HOSTS_BENCH_H_

#include "whole_bench.h"

enum {
  HOSTS_COUNTS = 3,  // sizes of small requests
  HOSTS_CALLS = 20,  // of a small request that are timed together
  HOSTS_INTERFACE_SIZE = 16,
};

// Zipf's exponent.
#define HOSTS_ZIPF 1.05

typedef enum hosts_op {
  HOSTS_GATHER = 0,
  HOSTS_ALLTOALLV,
} hosts_op;

const char *hosts_op_name(hosts_op op);  // "gather"

typedef struct hosts_bench {
  whole_bench whole;      // sizes, and the ranks; one device
  const char *interface;  // that leads to the other machines; NULL: the first
                          // whose network both have
  const char *peer;       // the library with the gather by MPI_Alltoallv; NULL:
                          // there is none
  const char *why_not;    // why |peer| is NULL
} hosts_bench;

// Between the first ranks of the first two machines, by TCP.
typedef struct hosts_link {
  char interface[HOSTS_INTERFACE_SIZE];  // of the first machine
  double one_gbs;                        // one way, 1e9 bytes a second
  double both_gbs;                       // each way, both at a time
  double round_us;                       // there and back, of one byte
} hosts_link;

// Requests of each rank for |rows| rows of |row_bytes|. NaN: not measured.
typedef struct hosts_figure {
  tarn_whole_type type;
  hosts_op op;
  bool zipf;
  size_t row_bytes;
  size_t rows;
  bool is_small;          // the mean of calls that follow each other
  double gbs;             // rows of all ranks, 1e9 bytes a second
  double us;              // of a call
  double over_alltoallv;  // in speed, of the same passes
  double over_link;       // rows that came to a machine from others, a second,
                          // over both_gbs of the same passes
  double wire_bytes;      // of a call, over all machines, without frames
  double needed_bytes;    // rows that had to cross, once for each machine
  double wire_over_needed;
  double messages;            // that a rank has sent in a call, at most
  char why[WHOLE_TEXT_SIZE];  // why it was not measured; "": it was
  bool is_skipped;            // there cannot be one here, which is no failure
} hosts_figure;

enum {
  HOSTS_TYPES = 2,
  HOSTS_FIGURES_MOST = (HOSTS_TYPES + 1) * WHOLE_ROWS_MOST * (2 + HOSTS_COUNTS)
};

typedef struct hosts_result {
  size_t ranks;
  size_t machines;
  hosts_link link;
  hosts_figure figures[HOSTS_FIGURES_MOST];
  size_t count;
  double memory_bytes;  // that gathers have added to a rank, at most
  char peer_skipped[WHOLE_TEXT_SIZE];  // "": it ran
  char failed[WHOLE_TEXT_SIZE];        // why figures are missing; "": none are
} hosts_result;

// How many machines the ranks of |comm| are on; 0: the communicator is broken.
// Collective, as is the next.
size_t hosts_count(tarn_comm *comm);

// False if there are no figures at all: |out->failed| says why.
bool hosts_bench_run(const hosts_bench *bench, hosts_result *out);

// ---------------------------------------------------------------------------
// Goals
// ---------------------------------------------------------------------------

// Which goals a link has: those of a short and fast one, of one that is slower
// than the processors, and of a long one.
typedef enum hosts_length {
  HOSTS_FREE = 0,
  HOSTS_LIMITED,
  HOSTS_LONG,
} hosts_length;

hosts_length hosts_length_of(const hosts_link *link);

typedef struct hosts_goal {
  const char *name;  // "gather_over_alltoallv"
  const hosts_figure *figure;
  double value;  // NaN: not measured
  double goal;   // the least that it should be
} hosts_goal;

enum { HOSTS_GOALS_MOST = HOSTS_FIGURES_MOST * 2 };

// Fills |out|, of HOSTS_GOALS_MOST; returns their number.
size_t hosts_goals(const hosts_result *result, hosts_goal *out);

#endif  // TARN_BENCH_HOSTS_BENCH_H_
