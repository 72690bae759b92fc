// probe.h - a device that is being measured: open, with a stream, and buffers
// of one size; and how what takes nanoseconds is timed on it.
//
// One call takes less time than reading a clock, so batches of calls are timed
// and divided. A batch is paired with one of what it is compared with, memcpy
// of the same size unless a figure says otherwise, in alternating order, so
// that a disturbance affects both. The result is the median over all pairs.
#ifndef TARN_BENCH_PROBE_H_
#define TARN_BENCH_PROBE_H_

#include "kit/stopwatch.h"
#include "tarn/tarn.h"

enum { PROBE_TEXT_SIZE = 128 };

typedef struct probe {
  const stopwatch *watch;
  size_t passes;  // that count; 0: as many as take a fifth of a second
  tarn_device *device;
  tarn_device *next;  // the next device of its type; NULL: it is the only one
  tarn_stream *stream;

  size_t size;             // of each of these, in bytes; 0: there are none
  unsigned char *source;   // on the host, written to
  unsigned char *target;   // where memcpy copies it to: |here|, if the host can
  tarn_addr here;          // on the device, as is the next
  tarn_addr beside;        // for copies within the device
  tarn_addr away;          // on |next|, 0 if that is NULL
  tarn_addr source_place;  // what to give back
  tarn_addr target_place;  // the same; 0: |target| is |here|

  size_t table;  // bytes of a table of rows
  void *scene;   // what batches need beside these; NULL: nothing
} probe;

// Opens |name| and makes a stream. The watch, the passes and the table are the
// caller's to set. False: |why|, PROBE_TEXT_SIZE bytes, says why not, as
// wherever a probe function takes one.
bool probe_open(probe *p, const char *name, char *why);
void probe_close(probe *p);

// Buffers of |size| bytes, all written to once; before that, none are held.
bool probe_take(probe *p, size_t size, char *why);
void probe_give(probe *p);  // where none are, too

// The same call |count| times; false at the first that fails, with its text as
// the library's last error.
typedef bool probe_batch(probe *p, size_t count);

typedef struct probe_times {
  double ns;      // of one call
  double beside;  // of one call of what it is compared with
  double ratio;   // of the first to the second, in the same pair
  size_t bytes;   // that a call moves
} probe_times;

// Medians, as above.
bool probe_time(probe *p, probe_batch *batch, probe_times *out, char *why);

// The same, compared with |beside|.
bool probe_time_beside(probe *p, probe_batch *batch, probe_batch *beside,
                       probe_times *out, char *why);

// Copies |p->source| to |p->target|.
probe_batch probe_memcpy;

// Puts the library's last error into |why|; false, for convenience.
bool probe_refused(char *why);

// |usual| unless the caller has set how many, and |most| at most.
size_t probe_passes(const probe *p, size_t usual, size_t most);

// Nanoseconds of |count| calls, over all; negative if one fails.
double probe_once(probe *p, probe_batch *batch, size_t count);

// The middle one of |count| values, which it sorts.
double probe_median(double *values, size_t count);

#endif  // TARN_BENCH_PROBE_H_
