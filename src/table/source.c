// Runs: the rows of this rank, in the order in which they lie in the files.
#include "table/source.h"

#include <stdlib.h>

#include "base/os.h"
#include "base/status.h"

static int by_offset(const void *left, const void *right) {
  const tarn__table_array *a = left;
  const tarn__table_array *b = right;
  return (a->at > b->at) - (a->at < b->at);
}

void tarn__table_sort(tarn__table_source *source) {
  qsort(source->arrays, source->array_count, sizeof *source->arrays, by_offset);
}

// The row of the tensor that is this rank's |row|-th, and how many follow it
// without another rank's between them.
static size_t find_row(const tarn__table_source *source,
                       const tarn__table_array *array, size_t row,
                       size_t *out_count) {
  size_t left = array->rows.count - row;
  *out_count = left;
  if (source->deal == 0) return array->rows.first + row;
  size_t within = row % source->deal;
  *out_count = tarn__lesser(left, source->deal - within);
  return (row / source->deal * source->ranks + source->rank) * source->deal +
         within;
}

// The file in which byte |*io_at| of |array| lies, which then is one of it.
static size_t find_file(const tarn__table_source *source,
                        const tarn__table_array *array, uint64_t *io_at) {
  size_t file = array->file;
  size_t last = array->file + array->files - 1;
  while (file < last && *io_at >= source->files[file].size)
    *io_at -= source->files[file++].size;
  return file;
}

// Whether |array| has another run. There are at least |*io_count| rows of this
// rank without others between them.
static bool next_of(const tarn__table_source *source,
                    const tarn__table_array *array, size_t *io_row,
                    tarn__table_run *out) {
  size_t count = 0;
  if (*io_row >= array->rows.count) return false;
  size_t row = array->skip + find_row(source, array, *io_row, &count);
  if (row >= array->length) return false;
  count = tarn__lesser(count, array->length - row);
  size_t bytes = array->rows.row;
  uint64_t at = array->at + row * bytes;
  size_t file = find_file(source, array, &at);
  if (file + 1 < array->file + array->files) {
    count = tarn__lesser(count, (source->files[file].size - at) / bytes);
  }
  *out = (tarn__table_run){.rows = &array->rows,
                           .file = file,
                           .at = at,
                           .offset = *io_row * bytes,
                           .size = count * bytes};
  *io_row += count;
  return true;
}

bool tarn__table_next_run(const tarn__table_source *source,
                          tarn__table_cursor *io_cursor, tarn__table_run *out) {
  for (; io_cursor->array < source->array_count; io_cursor->array++) {
    if (next_of(source, &source->arrays[io_cursor->array], &io_cursor->row,
                out)) {
      return true;
    }
    io_cursor->row = 0;
  }
  return false;
}

bool tarn__table_allows_ring(const tarn__table_source *source) {
  for (size_t i = 0; i < source->file_count; i++)
    if (tarn__os_is_on_fuse(source->files[i].fd)) return false;
  return true;
}

uint64_t tarn__table_run_bytes(const tarn__table_source *source) {
  tarn__table_cursor cursor = {0};
  tarn__table_run run;
  uint64_t bytes = 0;
  while (tarn__table_next_run(source, &cursor, &run))
    bytes += run.size;
  return bytes;
}
