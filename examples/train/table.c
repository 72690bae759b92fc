#include "table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job/try.h"

enum { PATH_SIZE = 4096 };

// The rows of this rank.
typedef struct part {
  size_t first;
  size_t count;
  float *rows;
} part;

static tarn_status find_part(const tarn_whole_tensor *table, size_t rank,
                             part *p) {
  tarn_addr address;
  void *view = NULL;
  TRY(tarn_whole_tensor_rows(table, rank, &p->first, &p->count));
  if (p->count == 0) return TARN_OK;  // fewer rows than ranks
  TRY(tarn_whole_tensor_local(table, &address));
  TRY(tarn_device_host_view(TARN_HOST, address, p->count * ROW * sizeof(float),
                            &view));
  p->rows = view;
  return TARN_OK;
}

// --- a file ----------------------------------------------------------------

// At the first rank, which tells the others.
static tarn_status make_folder(char path[PATH_SIZE]) {
  char text[512];
  const char *folder = getenv("TMPDIR");
  if (folder == NULL || *folder == '\0') folder = "/tmp";
  int length = snprintf(path, PATH_SIZE, "%s/tarn-train-XXXXXX", folder);
  if (length < 0 || length >= PATH_SIZE)
    return tarn_fail(TARN_E_INVALID, "TMPDIR is too long");
  if (mkdtemp(path) != NULL) return TARN_OK;
  snprintf(text, sizeof text, "cannot make the folder %.300s: %s", path,
           strerror(errno));
  return tarn_fail(TARN_E_IO, text);
}

static void remove_folder(const char *folder, const char *file) {
  (void)unlink(file);
  (void)rmdir(folder);
}

// All ranks together: the rows go to the file, and come out of it again.
static tarn_status store_and_load(const tarn_whole_tensor *table, part *p,
                                  const char *path) {
  TRY(tarn_whole_store(table, path, NULL, NULL));
  if (p->count > 0) memset(p->rows, 0, p->count * ROW * sizeof(float));
  return tarn_whole_load(table, path, NULL, NULL);
}

static tarn_status through_file(tarn_comm *comm, const tarn_whole_tensor *table,
                                part *p) {
  char folder[PATH_SIZE] = "";
  char path[PATH_SIZE + 16];
  bool first = tarn_comm_rank(comm) == 0;
  TRY(tarn_comm_agree(comm, first ? make_folder(folder) : TARN_OK));
  tarn_status status = tarn_comm_broadcast(comm, 0, folder, sizeof folder);
  snprintf(path, sizeof path, "%s/nodes.npy", folder);
  if (status == TARN_OK) status = store_and_load(table, p, path);
  if (first) remove_folder(folder, path);
  return status;
}

// --- the table -------------------------------------------------------------

static tarn_status fill(tarn_comm *comm, const tarn_whole_tensor *table,
                        const nodes *from) {
  part p = {.count = 0};
  tarn_status status = find_part(table, tarn_comm_rank(comm), &p);
  for (size_t i = 0; status == TARN_OK && i < p.count; i++)
    nodes_make(from, p.first + i, p.rows + i * ROW);
  // No rank reads rows before all have made theirs.
  TRY(tarn_comm_agree(comm, status));
  if (tarn_comm_machines(comm) > 1) return TARN_OK;
  return through_file(comm, table, &p);
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
  tarn_status status = fill(comm, &table, from);
  if (status == TARN_OK) {
    *out_table = table;
    return TARN_OK;
  }
  char text[512];  // the end of the table may have its own
  snprintf(text, sizeof text, "%s", tarn_last_error());
  (void)tarn_whole_destroy(table.whole);
  return tarn_fail(status, text);
}
