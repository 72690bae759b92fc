#include "table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "try.h"

enum { STAGED_ROWS = 2048 };

static const size_t ROW_SIZE = ROW * sizeof(float);

// Rows [first, first + count) of the table, on their way to |to|.
typedef struct part {
  const nodes *from;
  size_t first;
  size_t count;
  float *to;
  float *staged;  // room for STAGED_ROWS
  int file;
} part;

// --- a file without a name -------------------------------------------------

static tarn_status fail(const char *what, const char *path) {
  char text[512];
  snprintf(text, sizeof text, "%s %.300s: %s", what, path, strerror(errno));
  return tarn_fail(TARN_E_IO, text);
}

static tarn_status open_file(int *out_file) {
  char path[4096];
  const char *folder = getenv("TMPDIR");
  if (folder == NULL || *folder == '\0') folder = "/tmp";
  int length = snprintf(path, sizeof path, "%s/tarn-train-XXXXXX", folder);
  if (length < 0 || (size_t)length >= sizeof path)
    return tarn_fail(TARN_E_INVALID, "TMPDIR is too long");
  *out_file = mkstemp(path);
  if (*out_file < 0) return fail("cannot make the file", path);
  if (unlink(path) == 0) return TARN_OK;
  tarn_status status = fail("cannot take the name from", path);
  close(*out_file);
  return status;
}

// --- rows ------------------------------------------------------------------

static tarn_status write_all(int file, const void *bytes, size_t size,
                             size_t offset) {
  const char *at = bytes;
  while (size != 0) {
    ssize_t done = pwrite(file, at, size, (off_t)offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return fail("cannot write", "rows to a file in TMPDIR");
    at += done;
    offset += (size_t)done;
    size -= (size_t)done;
  }
  return TARN_OK;
}

static tarn_status read_all(int file, void *bytes, size_t size) {
  char *at = bytes;
  size_t offset = 0;
  while (offset != size) {
    ssize_t done = pread(file, at + offset, size - offset, (off_t)offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return fail("cannot read", "rows from a file in TMPDIR");
    if (done == 0) return tarn_fail(TARN_E_IO, "a file in TMPDIR is too short");
    offset += (size_t)done;
  }
  return TARN_OK;
}

static tarn_status write_rows(const part *p) {
  for (size_t done = 0; done < p->count; done += STAGED_ROWS) {
    size_t left = p->count - done;
    size_t count = left < STAGED_ROWS ? left : STAGED_ROWS;
    for (size_t i = 0; i < count; i++)
      nodes_make(p->from, p->first + done + i, p->staged + i * ROW);
    TRY(write_all(p->file, p->staged, count * ROW_SIZE, done * ROW_SIZE));
  }
  return TARN_OK;
}

static tarn_status through_file(part *p) {
  TRY(open_file(&p->file));
  tarn_status status = write_rows(p);
  if (status == TARN_OK) status = read_all(p->file, p->to, p->count * ROW_SIZE);
  close(p->file);
  return status;
}

// --- the table -------------------------------------------------------------

static tarn_status find_part(const tarn_whole_tensor *table, size_t rank,
                             part *p) {
  tarn_addr address;
  void *view = NULL;
  TRY(tarn_whole_tensor_rows(table, rank, &p->first, &p->count));
  if (p->count == 0) return TARN_OK;  // fewer rows than ranks
  TRY(tarn_whole_tensor_local(table, &address));
  TRY(tarn_device_host_view(TARN_HOST, address, p->count * ROW_SIZE, &view));
  p->to = view;
  return TARN_OK;
}

static tarn_status fill(const tarn_whole_tensor *table, const nodes *from,
                        size_t rank) {
  part p = {.from = from};
  tarn_block staged;
  TRY(find_part(table, rank, &p));
  TRY(memory_take("staged rows", STAGED_ROWS * ROW_SIZE, &staged));
  p.staged = staged.pointer;
  tarn_status status = through_file(&p);
  return first_of(status, memory_give(&staged));
}

tarn_status table_make(tarn_comm *comm, tarn_whole_type type, size_t rows,
                       const nodes *from, tarn_whole_tensor *out_table) {
  const tarn_whole_table_options options = {.struct_size = sizeof options,
                                            .type = type,
                                            .place = TARN_HOST,
                                            .dtype = TARN_DTYPE_F32,
                                            .rows = rows,
                                            .width = ROW,
                                            .name = "nodes"};
  tarn_whole_tensor table;
  TRY(tarn_whole_table_create(comm, &options, &table));
  tarn_status status = fill(&table, from, tarn_comm_rank(comm));
  // No rank reads rows before all have written theirs.
  status = tarn_comm_agree(comm, status);
  if (status == TARN_OK) {
    *out_table = table;
    return TARN_OK;
  }
  char text[512];  // the end of the table may have its own
  snprintf(text, sizeof text, "%s", tarn_last_error());
  (void)tarn_whole_destroy(table.whole);
  return tarn_fail(status, text);
}
