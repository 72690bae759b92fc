// Tables out of files. Until all ranks have read the header, and agree that
// they have read the same, no row changes.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/hostmem.h"
#include "base/status.h"
#include "table/call.h"

typedef struct load {
  tarn__table_call call;
  const char *const *paths;
  tarn__table_source source;
  tarn__table_reader *reader;
} load;

// --- shapes ----------------------------------------------------------------

// "header byte 60: ", or "": where a file says something.
static const char *say_where(size_t at, char *out, size_t size) {
  out[0] = '\0';
  if (at != 0) snprintf(out, size, "header byte %zu: ", at);
  return out;
}

static tarn_status refuse_shape(const load *l, const tarn__table_shape *shape,
                                const tarn_whole_tensor *tensor) {
  char where[48];
  bool part = (l->call.options.flags & TARN_FILE_PART) != 0;
  return tarn__fail(
      TARN_E_INVALID,
      "table: '%s': %s%zu rows of %zu in %zu dimensions, where %zu of %zu in "
      "%zu%s were expected",
      l->call.path, say_where(shape->shape_at, where, sizeof where),
      shape->rows, shape->width, shape->dims,
      l->call.options.first_row + tensor->rows, tensor->width, tensor->dims,
      part ? ", or more rows," : "");
}

// Whether the rows are those of the tensor.
static bool has_rows(const load *l, size_t rows, size_t wanted) {
  const tarn_file_options *o = &l->call.options;
  size_t end = 0;
  if (!tarn_size_add(o->first_row, wanted, &end)) return false;
  bool fewer = (o->flags & TARN_FILE_FEWER) != 0;
  bool more = (o->flags & TARN_FILE_PART) != 0;
  return rows == end || (rows > end && more) || (rows < end && fewer);
}

static tarn_status check_shape(const load *l, const tarn__table_shape *shape,
                               const tarn_whole_tensor *tensor) {
  bool fits = shape->dims == tensor->dims && shape->width == tensor->width &&
              has_rows(l, shape->rows, tensor->rows);
  return fits ? TARN_OK : refuse_shape(l, shape, tensor);
}

// The dtype as which elements are read.
static tarn_status find_dtype(const load *l, const tarn__table_shape *shape,
                              tarn_dtype *out) {
  char where[48];
  tarn_dtype wanted = l->call.options.dtype;
  *out = wanted != TARN_DTYPE_NONE ? wanted : shape->dtype;
  if (tarn_dtype_size(*out) == tarn_dtype_size(shape->dtype)) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "table: '%s': %selements are of %s, which cannot be read "
                    "as %s",
                    l->call.path,
                    say_where(shape->dtype_at, where, sizeof where),
                    tarn_dtype_name(shape->dtype), tarn_dtype_name(wanted));
}

static tarn_status take_array(load *l, size_t i,
                              const tarn__table_shape *shape) {
  tarn__table_array *array = &l->source.arrays[i];
  const tarn_whole_tensor *tensor = &l->call.tensors[i].tensor;
  tarn_dtype dtype = TARN_DTYPE_NONE;
  char where[48];
  char text[TARN__ERROR_TEXT];
  TARN__TRY(find_dtype(l, shape, &dtype));
  TARN__TRY(check_shape(l, shape, tensor));
  array->files = l->source.file_count;
  array->at = shape->at;
  array->length = shape->rows;
  array->skip = l->call.options.first_row;
  tarn_status status = tarn__table_rows_begin(tensor, dtype, &array->rows);
  if (status != TARN_E_INVALID) return status;
  snprintf(text, sizeof text, "%s", tarn_last_error());
  return tarn__fail(status, "%s, of '%s': %s", text, l->call.path,
                    say_where(shape->dtype_at, where, sizeof where));
}

// --- files of each format --------------------------------------------------

static bool is_checked(const load *l) {
  return (l->call.options.flags & TARN_FILE_UNCHECKED) == 0;
}

static tarn_status take_npy(load *l) {
  tarn__table_shape shape;
  TARN__TRY(tarn__file_read_npy(&l->source.files[0], is_checked(l), &shape));
  return take_array(l, 0, &shape);
}

static tarn_status read_names(load *l, const char **names,
                              tarn__table_shape *shapes) {
  size_t count = l->call.count;
  if (names == NULL || shapes == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < count; i++)
    names[i] = l->call.tensors[i].name;
  TARN__TRY(tarn__file_read_safetensors(&l->source.files[0], is_checked(l),
                                        names, count, shapes));
  for (size_t i = 0; i < count; i++)
    TARN__TRY(take_array(l, i, &shapes[i]));
  return TARN_OK;
}

static tarn_status take_safetensors(load *l) {
  size_t count = l->call.count;
  const char **names = tarn__host_array(count, sizeof *names);
  tarn__table_shape *shapes = tarn__host_array(count, sizeof *shapes);
  tarn_status status = read_names(l, names, shapes);
  tarn__host_free_array(names, count, sizeof *names);
  tarn__host_free_array(shapes, count, sizeof *shapes);
  return status;
}

// Rows that a file has, whole ones.
static tarn_status count_rows(const tarn__table_file *file, size_t row,
                              size_t *io_rows) {
  if (file->size % row == 0 &&
      tarn_size_add(*io_rows, file->size / row, io_rows)) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID,
                    "table: '%s' has %" PRIu64
                    " bytes, which are no rows of %zu bytes",
                    file->path, file->size, row);
}

static tarn_status take_raw(load *l) {
  const tarn_whole_tensor *tensor = &l->call.tensors[0].tensor;
  tarn_dtype dtype = l->call.options.dtype;
  if (dtype == TARN_DTYPE_NONE) dtype = tensor->dtype;
  tarn__table_shape shape = {
      .dtype = dtype, .dims = tensor->dims, .width = tensor->width};
  size_t row = tensor->width * tarn_dtype_size(dtype);
  for (size_t i = 0; i < l->source.file_count; i++)
    TARN__TRY(count_rows(&l->source.files[i], row, &shape.rows));
  l->source.deal = l->call.options.deal;
  return take_array(l, 0, &shape);
}

// --- the same files --------------------------------------------------------

static tarn_status open_files(load *l) {
  tarn__table_source *s = &l->source;
  bool cached = (l->call.options.flags & TARN_FILE_CACHED) != 0;
  s->files = tarn__host_array(s->file_count, sizeof *s->files);
  if (s->files == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < s->file_count; i++)
    s->files[i] = (tarn__table_file){.fd = -1, .direct = -1};
  for (size_t i = 0; i < s->file_count; i++) {
    if (l->paths[i] == NULL)
      return tarn__fail(TARN_E_INVALID, "%s: path %zu is NULL", l->call.name,
                        i);
    TARN__TRY(tarn__file_open(l->paths[i], cached, &s->files[i]));
  }
  return TARN_OK;
}

// One number for what this rank sees.
static tarn_status identify(const load *l, uint32_t *out_sum) {
  tarn__table_identity one = {0};
  for (size_t i = 0; i < l->source.file_count; i++) {
    TARN__TRY(tarn__file_identify(&l->source.files[i], &one));
    *out_sum = tarn__crc32c(*out_sum, &one, sizeof one);
  }
  return TARN_OK;
}

// Headers are read afterwards: what differs there differs here.
static tarn_status agree_on_files(load *l) {
  char words[224] = "";
  uint32_t sum = 0;
  tarn_status status = open_files(l);
  if (status == TARN_OK) status = identify(l, &sum);
  if (status == TARN_OK) {
    snprintf(words, sizeof words,
             "'%.150s' of %" PRIu64 " bytes, sum %08" PRIx32, l->call.path,
             l->source.files[0].size, sum);
  }
  TARN__TRY(tarn_comm_agree(l->call.comm, status));
  status = tarn_comm_same(l->call.comm, &sum, sizeof sum, words);
  if (status != TARN_E_INVALID) return status;
  char text[TARN__ERROR_TEXT];
  snprintf(text, sizeof text, "%s", tarn_last_error());
  return tarn__fail(TARN_E_IO, "table: ranks see different files: %s", text);
}

// --- all of it -------------------------------------------------------------

static tarn_status take_arrays(load *l) {
  static tarn_status (*const takes[])(load * l) = {
      [TARN_FILE_NPY] = take_npy,
      [TARN_FILE_SAFETENSORS] = take_safetensors,
      [TARN_FILE_RAW] = take_raw};
  const tarn_file_options *o = &l->call.options;
  tarn__table_source *s = &l->source;
  s->arrays = tarn__host_array(l->call.count, sizeof *s->arrays);
  if (s->arrays == NULL) return TARN_E_NOMEM;
  s->array_count = l->call.count;
  TARN__TRY(takes[o->format](l));
  tarn__table_sort(s);
  return tarn__reader_create(s, o->buffer, (o->flags & TARN_FILE_THREADS) != 0,
                             &l->reader);
}

static tarn_status go_on(void *self, uint64_t until, bool *out_done) {
  return tarn__reader_go_on(self, until, out_done);
}

static tarn_status run(load *l) {
  static const tarn__table_tally none = {0};
  const tarn_file_options *o = &l->call.options;
  tarn_status status = take_arrays(l);
  const tarn__table_course course = {
      .comm = l->call.comm,
      .go_on = go_on,
      .self = l->reader,
      .tally = l->reader != NULL ? tarn__reader_tally(l->reader) : &none,
      .all = status == TARN_OK ? tarn__table_run_bytes(&l->source) : 0,
      .progress = o->progress,
      .user = o->user};
  return tarn__table_course_run(&course, status);
}

static void end(load *l) {
  tarn__table_source *s = &l->source;
  tarn__reader_destroy(l->reader);
  for (size_t i = 0; i < s->array_count; i++)
    tarn__table_rows_end(&s->arrays[i].rows);
  for (size_t i = 0; s->files != NULL && i < s->file_count; i++)
    tarn__file_close(&s->files[i]);
  tarn__host_free_array(s->arrays, s->array_count, sizeof *s->arrays);
  tarn__host_free_array(s->files, s->file_count, sizeof *s->files);
}

static void tell(const load *l, tarn_file_report *out_report) {
  const tarn__table_tally *tally = tarn__reader_tally(l->reader);
  const tarn_file_report report = {.rows = l->call.tensors[0].tensor.rows,
                                   .bytes = tally->moved,
                                   .direct_bytes = tally->direct,
                                   .checked = tally->checked,
                                   .method = tarn__reader_method(l->reader)};
  tarn__table_call_report(&report, out_report);
}

static tarn_status go(load *l, tarn_status status,
                      tarn_file_report *out_report) {
  if (status == TARN_OK)
    status = tarn__table_call_check_report(&l->call, out_report);
  TARN__TRY(tarn__table_call_compare(&l->call, status));
  l->source.rank = l->call.rank;
  l->source.ranks = l->call.ranks;
  TARN__TRY(agree_on_files(l));
  TARN__TRY(run(l));
  tell(l, out_report);
  return TARN_OK;
}

static tarn_status load_all(load *l, const tarn_file_options *options,
                            tarn_file_report *out_report) {
  tarn_status status = TARN_OK;
  TARN__TRY(tarn__table_call_begin(&l->call, options, &status));
  status = go(l, status, out_report);
  end(l);
  tarn__table_call_end(&l->call);
  return status;
}

tarn_status tarn_whole_load(const tarn_whole_tensor *tensor, const char *path,
                            const tarn_file_options *options,
                            tarn_file_report *out_report) {
  tarn_whole_named one;
  load l = {
      .call = tarn__table_call_of_one(TARN__TABLE_LOAD, "tarn_whole_load",
                                      TARN_FILE_BY_NAME, tensor, path, &one),
      .paths = &path,
      .source.file_count = 1};
  return load_all(&l, options, out_report);
}

tarn_status tarn_whole_load_named(const tarn_whole_named *tensors, size_t count,
                                  const char *path,
                                  const tarn_file_options *options,
                                  tarn_file_report *out_report) {
  load l = {.call = {.verb = TARN__TABLE_LOAD,
                     .name = "tarn_whole_load_named",
                     .format = TARN_FILE_SAFETENSORS,
                     .path = path,
                     .tensors = tensors,
                     .count = count},
            .paths = &path,
            .source.file_count = 1};
  return load_all(&l, options, out_report);
}

tarn_status tarn_whole_load_raw(const tarn_whole_tensor *tensor,
                                const char *const *paths, size_t count,
                                const tarn_file_options *options,
                                tarn_file_report *out_report) {
  tarn_whole_named one;
  const char *first = paths != NULL && count > 0 ? paths[0] : NULL;
  load l = {
      .call = tarn__table_call_of_one(TARN__TABLE_LOAD, "tarn_whole_load_raw",
                                      TARN_FILE_RAW, tensor, first, &one),
      .paths = paths,
      .source.file_count = count};
  return load_all(&l, options, out_report);
}
