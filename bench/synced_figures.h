// synced_figures.h - how each figure of synced_bench.h is measured.
//
// Each function makes its buffers, measures and ends them. False: |why|,
// BENCH_TEXT_SIZE bytes, says why there is no value.
#ifndef TARN_BENCH_SYNCED_FIGURES_H_
#define TARN_BENCH_SYNCED_FIGURES_H_

#include "synced_bench.h"

// The device on which is measured.
typedef struct synced_scene {
  const synced_bench *bench;
  tarn_device *device;
  tarn_place place;  // its own memory
} synced_scene;

// --- synced_scene.c ----------------------------------------------------------

// Puts the library's last error into |why|; false, for convenience.
bool synced_refused(char *why);

// |usual| unless the command says otherwise, and |most| at most.
size_t synced_passes(const synced_scene *s, size_t usual, size_t most);

// The copies since the counts of |buffer| were reset; |buffer| NULL: of all
// buffers.
typedef struct synced_moved {
  uint64_t copies_in, copies_out;  // to the device, and from it to the host
  uint64_t bytes_in, bytes_out;
} synced_moved;

bool synced_read_moved(tarn_synced *buffer, synced_moved *out);

// Memory as a buffer has it, of the same pools, for copies by hand. Blocks that
// there are not have no pool.
typedef struct synced_pair {
  tarn_block here;   // at the host
  tarn_block there;  // at the device
} synced_pair;

bool synced_pair_take(const synced_scene *s, size_t size, synced_pair *out);
void synced_pair_give(synced_pair *pair);

// --- synced_access.c ---------------------------------------------------------

// begin + end of a READ of the whole range, which is valid there already, over
// two uncontended atomic additions: batches of both by turns, in the thread's
// time, median of the ratios.
bool synced_access(const synced_scene *s, double *out, char *why);

// The copies of the nine accesses in the example of Caffe's SyncedMemory. Their
// order is checked.
bool synced_document(const synced_scene *s, double *out, char *why);

// --- synced_prefetch.c -------------------------------------------------------

// Bytes that come back to the host for each batch of the prefetch loop.
bool synced_prefetch_bytes(const synced_scene *s, double *out, char *why);

// An iteration of that loop over the longer of its copy and its use, each
// alone.
bool synced_prefetch_time(const synced_scene *s, double *out, char *why);

// --- synced_rows.c -----------------------------------------------------------

// Rows at random places, some of them adjacent, are written at one place, and
// everything is read at the other, in both directions: bytes copied beyond
// those rows. Copies must be as many as runs of rows, and all bytes right.
bool synced_rows_bytes(const synced_scene *s, double *out, char *why);

// Rows of which no two are adjacent are written at the host, one by one, and
// everything is read at the device: time beyond that of the same copies made by
// hand, by row.
bool synced_rows_time(const synced_scene *s, double *out, char *why);

#endif  // TARN_BENCH_SYNCED_FIGURES_H_
