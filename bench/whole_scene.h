// whole_scene.h - one rank of `tarn bench whole`, and what it does.
//
//   whole_bench.c   processes: the first rank's, and those that it forks
//   whole_scene.c   what all of these stand on: names, sizes, agreement
//   whole_table.c   a whole that is made, filled and timed
//   whole_work.c    each op once, by all ranks from one moment on
//   whole_check.c   that rows are right, before and after anything is timed
//   whole_passes.c  ops by turns, and medians
//   whole_small.c   few rows, beside NumPy's
//
// Functions that return bool are collective: false at one rank is false at all,
// and |why| of the scene says why, the same at all.
#ifndef TARN_BENCH_WHOLE_SCENE_H_
#define TARN_BENCH_WHOLE_SCENE_H_

#include "whole_bench.h"
#include "whole_peer.h"
#include "whole_take.h"

typedef struct whole_scene {
  const whole_bench *bench;
  tarn_comm *comm;
  size_t rank;
  tarn_device *device;
  bool is_plain;  // the host reaches the device's memory

  // Of the device, a batch each: dense rows, what memcpy reads, and indices.
  tarn_addr dense;
  tarn_addr source;
  tarn_addr indices;
  size_t indices_size;
  // The same on the host, for filling and checking.
  float *rows;
  int64_t *numbers;

  whole_peer *peer;  // the first rank's, and to see that there is one
  talk *take;        // the first rank's; NULL: none
  uint64_t seed;     // of the indices that are drawn next
  whole_kind kind;
  tarn_whole *whole;
  // The ranks' parts, as this one's host reaches them, else NULL.
  unsigned char *parts[WHOLE_RANKS_MOST];
  unsigned char *touched;  // memory that is touched against the clock

  tarn_status status;  // of what failed last
  char why[WHOLE_TEXT_SIZE];
  bool is_broken;  // the communicator
} whole_scene;

// ---------------------------------------------------------------------------
// whole_scene.c
// ---------------------------------------------------------------------------

// Whether |mine| of all ranks is true: where it is not, |why| of the scene was
// filled before. |out_last| is the latest |now| of all; NULL: not asked for.
bool whole_agree(whole_scene *s, bool mine, uint64_t now, uint64_t *out_last);

// Not collective: whether |status| is TARN_OK, and if not, |why|.
bool whole_did(whole_scene *s, tarn_status status);

// Rows of a batch, and bytes of a rank's part that is neither short nor empty.
size_t whole_batch_rows(const whole_bench *bench, size_t row_bytes);
size_t whole_part_bytes(const whole_bench *bench);

// ---------------------------------------------------------------------------
// whole_table.c
// ---------------------------------------------------------------------------

// Opens the device and takes the batches' memory.
bool whole_scene_open(whole_scene *s);
void whole_scene_close(whole_scene *s);

// Times making a table of the scene's kind, against touching as much memory.
bool whole_table_time(whole_scene *s, whole_made *out);

// Makes one and fills it, and says what it is made of.
bool whole_table_make(whole_scene *s, whole_made *out);
bool whole_table_end(whole_scene *s);

// Not collective: |size| bytes, at most a batch, from or to the device.
bool whole_put(whole_scene *s, tarn_addr to, const void *from, size_t size);
bool whole_get(whole_scene *s, void *to, tarn_addr from, size_t size);

// ---------------------------------------------------------------------------
// whole_work.c
// ---------------------------------------------------------------------------

// The work that is done once.
typedef struct whole_job {
  whole_op op;
  bool zipf;
  bool alone;  // by the first rank, while the others wait
} whole_job;

// Whether that makes sense for the scene's kind.
bool whole_job_fits(const whole_scene *s, whole_job job);

// Draws indices, prepares dense rows, and does it from one moment on: payload
// of all ranks in 1e9 bytes a second.
bool whole_job_do(whole_scene *s, whole_job job, size_t row_bytes,
                  double *out_gbs);

// Not collective but where the library's function is: |op|, which is none of
// MPI, of the first |count| dense rows and indices.
bool whole_act(whole_scene *s, whole_op op, size_t row_bytes, size_t count);

// ---------------------------------------------------------------------------
// whole_check.c
// ---------------------------------------------------------------------------

// Does |op|, which is WHOLE_GATHER, _SCATTER, _SCATTER_ADD or _PLAIN_GATHER,
// with rows of |row_bytes|, and looks at each. Leaves the table as it was.
bool whole_check(whole_scene *s, whole_op op, size_t row_bytes);

// ---------------------------------------------------------------------------
// whole_small.c
// ---------------------------------------------------------------------------

// Adds the small gathers of the scene's kind to |out|, by the first rank while
// the others wait.
bool whole_small_measure(whole_scene *s, whole_result *out);

// ---------------------------------------------------------------------------
// whole_passes.c
// ---------------------------------------------------------------------------

// All figures of the scene's kind into |out|: a figure that cannot be measured
// has a text there. False: the communicator is broken.
bool whole_kind_measure(whole_scene *s, whole_made *out_made,
                        whole_result *out);

#endif  // TARN_BENCH_WHOLE_SCENE_H_
