// Headers and checksums of files, and whether ranks see the same file.
#include "table/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "format/npy.h"
#include "format/safetensors.h"

static tarn_status refuse(const char *path, const char *what) {
  int error = errno;
  return tarn__fail(TARN_E_IO, "table: '%s': cannot %s: %s", path, what,
                    strerror(error));
}

// --- open and close --------------------------------------------------------

bool tarn__file_name_part(char *out, size_t size, const char *prefix,
                          size_t rank, size_t ranks) {
  int length = snprintf(out, size, "%s_part_%zu_of_%zu", prefix, rank, ranks);
  return length >= 0 && (size_t)length < size;
}

void tarn__file_close(tarn__table_file *file) {
  if (file->fd >= 0) tarn__os_close(file->fd);
  if (file->direct >= 0) tarn__os_close(file->direct);
  tarn__host_free_array(file->sums, file->sum_count, sizeof *file->sums);
  *file = (tarn__table_file){.fd = -1, .direct = -1};
}

tarn_status tarn__file_open(const char *path, bool cached,
                            tarn__table_file *out) {
  *out = (tarn__table_file){.path = path, .fd = -1, .direct = -1};
  out->fd = tarn__os_open(path, TARN__OS_TO_READ);
  if (out->fd < 0) return refuse(path, "open it");
  if (!tarn__os_file_size(out->fd, &out->size)) {
    tarn_status status =
        errno == EINVAL
            ? tarn__fail(TARN_E_IO, "table: '%s': not a regular file", path)
            : refuse(path, "ask for its size");
    tarn__file_close(out);
    return status;
  }
  if (!cached) out->direct = tarn__os_open(path, TARN__OS_TO_READ_DIRECTLY);
  return TARN_OK;
}

static tarn_status read_some(const tarn__table_file *file, uint64_t offset,
                             void *out, size_t size, size_t *out_got) {
  if (tarn__os_read_at(file->fd, offset, out, size, out_got)) return TARN_OK;
  int error = errno;
  return tarn__fail(TARN_E_IO, "table: '%s': byte %" PRIu64 ": %s", file->path,
                    offset + *out_got, strerror(error));
}

tarn_status tarn__file_read(const tarn__table_file *file, uint64_t offset,
                            void *out, size_t size) {
  size_t got = 0;
  TARN__TRY(read_some(file, offset, out, size, &got));
  if (got == size) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT,
                    "table: '%s': the file ends at byte %" PRIu64
                    ", where %zu more were expected",
                    file->path, offset + got, size - got);
}

// --- headers ---------------------------------------------------------------

// How long the header of a format is.
typedef tarn_status head_size(const char *name, const void *bytes, size_t size,
                              size_t file_size, size_t *out_head_size);

// Reads the header into memory that tarn__host_free gives back.
static tarn_status read_head(const tarn__table_file *file, head_size *measure,
                             unsigned char **out_bytes, size_t *out_size) {
  unsigned char first[TARN__NPY_LENGTH] = {0};
  size_t got = 0;
  *out_bytes = NULL;
  TARN__TRY(read_some(file, 0, first, sizeof first, &got));
  TARN__TRY(measure(file->path, first, got, file->size, out_size));
  if (*out_size == 0) return TARN_OK;
  *out_bytes = tarn__host_alloc(*out_size);
  if (*out_bytes == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn__file_read(file, 0, *out_bytes, *out_size);
  if (status == TARN_OK) return TARN_OK;
  tarn__host_free(*out_bytes, *out_size);
  *out_bytes = NULL;
  return status;
}

// Room for the sums of |length| bytes from |begin| on.
static tarn_status make_sums(tarn__table_file *file, uint64_t begin,
                             uint64_t length) {
  size_t count = tarn__sums_count(length);
  file->begin = begin;
  file->length = length;
  if (count == 0) return TARN_OK;
  file->sums = tarn__host_array(count, sizeof *file->sums);
  if (file->sums == NULL) return TARN_E_NOMEM;
  file->sum_count = count;
  return TARN_OK;
}

static void drop_sums(tarn__table_file *file) {
  tarn__host_free_array(file->sums, file->sum_count, sizeof *file->sums);
  file->sums = NULL;
  file->sum_count = 0;
}

// Chunks that begin between blocks cannot be read past the cache.
static void settle_sums(tarn__table_file *file) {
  if (file->begin % TARN__TABLE_BLOCK == 0 || file->direct < 0) return;
  tarn__os_close(file->direct);
  file->direct = -1;
}

// --- .npy ------------------------------------------------------------------

static tarn_status take_block(tarn__table_file *file,
                              const tarn__format_sums_place *place,
                              const void *bytes, size_t size) {
  tarn__format_sums sums;
  TARN__TRY(tarn__sums_read(file->path, place, bytes, size, file->size, &sums));
  if (!sums.found) return TARN_OK;
  TARN__TRY(make_sums(file, place->array_offset, place->array_size));
  for (size_t i = 0; i < file->sum_count; i++)
    file->sums[i] = tarn__sums_at(&sums, i);
  settle_sums(file);
  return TARN_OK;
}

static tarn_status read_block(tarn__table_file *file, size_t offset,
                              size_t size) {
  tarn__format_sums_place place;
  size_t got = 0;
  if (!tarn__sums_place(offset, size, &place)) return TARN_OK;
  if (place.offset >= file->size) return TARN_OK;
  unsigned char *bytes = tarn__host_alloc(place.size);
  if (bytes == NULL) return TARN_E_NOMEM;
  tarn_status status = read_some(file, place.offset, bytes, place.size, &got);
  if (status == TARN_OK) status = take_block(file, &place, bytes, got);
  tarn__host_free(bytes, place.size);
  return status;
}

tarn_status tarn__file_read_npy(tarn__table_file *file, bool checked,
                                tarn__table_shape *out_shape) {
  unsigned char *head = NULL;
  size_t size = 0;
  tarn__format_npy npy;
  TARN__TRY(read_head(file, tarn__npy_head, &head, &size));
  tarn_status status = tarn__npy_read(file->path, head, size, file->size, &npy);
  tarn__host_free(head, size);
  if (status != TARN_OK) return status;
  *out_shape = (tarn__table_shape){.dtype = npy.dtype,
                                   .dims = npy.rank,
                                   .rows = npy.dims[0],
                                   .width = npy.dims[1],
                                   .at = npy.offset,
                                   .dtype_at = npy.dtype_at,
                                   .shape_at = npy.shape_at};
  return checked ? read_block(file, npy.offset, npy.size) : TARN_OK;
}

// --- safetensors -----------------------------------------------------------

static tarn_status take_tensor(const tarn__table_file *file,
                               const tarn_safetensor *tensor,
                               tarn__table_shape *out) {
  size_t rank = tensor->shape.rank;
  const int64_t *dims = tensor->shape.dims;
  if (rank < 1 || rank > 2) {
    return tarn__fail(TARN_E_INVALID,
                      "table: '%s': tensor '%s' has %zu dimensions; one or two "
                      "expected",
                      file->path, tensor->name, rank);
  }
  if (tensor->dtype == TARN_DTYPE_NONE) {
    return tarn__fail(TARN_E_INVALID, "table: '%s': tensor '%s' is of %s",
                      file->path, tensor->name, tensor->dtype_text);
  }
  *out = (tarn__table_shape){.dtype = tensor->dtype,
                             .dims = rank,
                             .rows = (size_t)dims[0],
                             .width = rank == 2 ? (size_t)dims[1] : 1,
                             .at = tensor->offset};
  return TARN_OK;
}

static tarn_status take_tensors(const tarn__table_file *file,
                                const tarn_safetensors *head,
                                const char *const *names, size_t count,
                                tarn__table_shape *out_shapes) {
  for (size_t i = 0; i < count; i++) {
    const tarn_safetensor *tensor = tarn_safetensors_find(head, names[i]);
    if (tensor == NULL) {
      return tarn__fail(TARN_E_INVALID, "table: '%s' has no tensor '%s'",
                        file->path, names[i]);
    }
    TARN__TRY(take_tensor(file, tensor, &out_shapes[i]));
  }
  return TARN_OK;
}

static const char *metadata_of(const tarn_safetensors *head, const char *key) {
  const char *name = NULL;
  const char *value = NULL;
  for (size_t i = 0; tarn_safetensors_metadata_at(head, i, &name, &value); i++)
    if (strcmp(name, key) == 0) return value;
  return NULL;
}

static tarn_status take_texts(tarn__table_file *file,
                              const tarn_safetensors *head, size_t begin) {
  bool found = false;
  TARN__TRY(make_sums(file, begin, file->size - begin));
  TARN__TRY(tarn__sums_of_text(
      file->path, metadata_of(head, TARN__SUMS_CHUNK_KEY),
      metadata_of(head, TARN__SUMS_KEY), file->sum_count, file->sums, &found));
  if (found) {
    settle_sums(file);
  } else {
    drop_sums(file);
  }
  return TARN_OK;
}

tarn_status tarn__file_read_safetensors(tarn__table_file *file, bool checked,
                                        const char *const *names, size_t count,
                                        tarn__table_shape *out_shapes) {
  unsigned char *bytes = NULL;
  size_t size = 0;
  tarn_safetensors *head = NULL;
  TARN__TRY(read_head(file, tarn__safetensors_head, &bytes, &size));
  tarn_status status =
      tarn__safetensors_open_head(file->path, bytes, size, file->size, &head);
  tarn__host_free(bytes, size);
  if (status != TARN_OK) return status;
  status = take_tensors(file, head, names, count, out_shapes);
  if (status == TARN_OK && checked) status = take_texts(file, head, size);
  tarn_safetensors_close(head);
  return status;
}

// --- the same file ---------------------------------------------------------

tarn_status tarn__file_identify(const tarn__table_file *file,
                                tarn__table_identity *out) {
  enum { SOME = 1 << 16 };
  *out = (tarn__table_identity){.size = file->size};
  size_t some = (size_t)tarn__lesser(file->size, SOME);
  if (some == 0) return TARN_OK;
  unsigned char *bytes = tarn__host_alloc(some);
  if (bytes == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn__file_read(file, 0, bytes, some);
  if (status == TARN_OK) {
    out->head = tarn__crc32c(0, bytes, some);
    status = tarn__file_read(file, file->size - some, bytes, some);
  }
  if (status == TARN_OK) out->tail = tarn__crc32c(0, bytes, some);
  tarn__host_free(bytes, some);
  return status;
}
