// table_scene.h - what the parts of table_bench.h measure in: one of several
// ranks, which do each step together.
//
//   table_samples load = {0};
//   for each pass
//     if (!table_time(s, do_load, &files, &load)) return false;
//   table_note_rate(s, out, LOAD_GBS, &load, bytes);
#ifndef TARN_BENCH_TABLE_SCENE_H_
#define TARN_BENCH_TABLE_SCENE_H_

#include "table_bench.h"
#include "tarn/whole.h"

typedef struct table_scene {
  const table_bench *bench;  // |folder| is the part's own
  tarn_comm *comm;           // of all ranks, or of those that measure together
  size_t rank;
  char why[TABLE_TEXT_SIZE];  // of what failed last
} table_scene;

// --- failures ----------------------------------------------------------------

// Whether |status| is TARN_OK; if not, |why| is the library's last error.
bool table_did(table_scene *s, tarn_status status);

// Puts a text into |why|; false, for convenience.
bool table_refuse(table_scene *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Collective: whether |mine| of all ranks is true. If not, |why| of all is that
// of the lowest rank that failed.
bool table_agree(table_scene *s, bool mine);

// What ranks do at a time.
typedef bool table_step(table_scene *s, void *context);

// Collective: the first rank does |step| with a communicator that is only its
// own. The others wait meanwhile. False: it has failed.
bool table_alone(table_scene *s, table_step *step, void *context);

// --- times -------------------------------------------------------------------

// Nanoseconds of the passes so far.
typedef struct table_samples {
  double ns[TABLE_PASSES_MOST];
  size_t count;
} table_samples;

// Collective: begins |step|, which may be collective, at all ranks at one
// moment, and appends the time
// until the last one has done it. False: a rank has failed.
bool table_time(table_scene *s, table_step *step, void *context,
                table_samples *io_samples);

// The same value at all ranks, by the first one: |ns| of something that it has
// measured.
void table_sample(table_samples *io_samples, double ns);

// --- figures -----------------------------------------------------------------

// Median and quartiles of |count| values.
void table_note(table_result *out, size_t figure, const double *values,
                size_t count);

// Of 1e9 bytes a second: |bytes| of each sample.
void table_note_rate(table_result *out, size_t figure,
                     const table_samples *samples, double bytes);

// Of the ratio of two speeds, in the same pass: |peer|'s time over |ours|.
void table_note_speedup(table_result *out, size_t figure,
                        const table_samples *ours, const table_samples *peer);

// There cannot be one here.
void table_skip(table_result *out, size_t figure, const char *why);

// --- files -------------------------------------------------------------------

// The path of a file in the part's folder.
void table_path(const table_scene *s, const char *name,
                char out[TABLE_PATH_SIZE]);

// Whether files in |folder| are kept in memory.
bool table_folder_is_memory(const char *folder);

#endif  // TARN_BENCH_TABLE_SCENE_H_
