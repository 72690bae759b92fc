// Tables into and out of files.
//
//   warm   the file is in the page cache: load by turns with preads of 1 MiB by
//          as many processes, each its rows, to where the load puts them
//   store  into a new file that replaces the old one: by turns with pwrites of
//          1 MiB, which are brought to the disk and put in place likewise
//   cold   the page cache has nothing of the file: by turns with fio
//
// That rows come back is checked before anything is measured.
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "table_fio.h"
#include "table_parts.h"
#include "table_scene.h"
#include "tarn/table.h"

enum {
  MIB = 1 << 20,
  DEPTH = 16,      // requests of a load under way: its buffer, of 1 MiB each
  HEAD = 4096,     // bytes of an .npy before its rows
  COLD_PASSES = 5  // at most: fio takes a second to begin and end
};

static const size_t usual_size = (size_t)512 << 20;

// --- figures -----------------------------------------------------------------

enum {
  LOAD_OVER_PREAD,
  UNCHECKED_OVER_PREAD,
  FIRST_OVER_PREAD,
  STORE_OVER_PWRITE,
  COLD_OVER_FIO,
  LOAD_GBS,
  UNCHECKED_GBS,
  FIRST_GBS,
  PREAD_GBS,
  STORE_GBS,
  PWRITE_GBS,
  COLD_GBS,
  FIO_GBS,
  FIGURES
};

static const bench_figure figures[FIGURES] = {
    [LOAD_OVER_PREAD] = {"load_over_pread", "ratio",
                         "out of the page cache, with checksums", .9,
                         SHEET_AT_LEAST},
    [UNCHECKED_OVER_PREAD] = {"load_unchecked_over_pread", "ratio",
                              "the same without", NAN, SHEET_AT_LEAST},
    [FIRST_OVER_PREAD] = {"first_load_over_pread", "ratio",
                          "the table is made first", NAN, SHEET_AT_LEAST},
    [STORE_OVER_PWRITE] = {"store_over_pwrite", "ratio",
                           "both synced and renamed", .9, SHEET_AT_LEAST},
    [COLD_OVER_FIO] = {"cold_over_fio", "ratio",
                       "past the page cache, sequential", .9, SHEET_AT_LEAST},
    [LOAD_GBS] = {"load", "GB/s", "of all ranks", NAN, SHEET_AT_LEAST},
    [UNCHECKED_GBS] = {"load_unchecked", "GB/s", "", NAN, SHEET_AT_LEAST},
    [FIRST_GBS] = {"first_load", "GB/s", "", NAN, SHEET_AT_LEAST},
    [PREAD_GBS] = {"pread", "GB/s", "1 MiB, into resident memory", NAN,
                   SHEET_AT_LEAST},
    [STORE_GBS] = {"store", "GB/s", "", NAN, SHEET_AT_LEAST},
    [PWRITE_GBS] = {"pwrite", "GB/s", "1 MiB", NAN, SHEET_AT_LEAST},
    [COLD_GBS] = {"cold_load", "GB/s", "", NAN, SHEET_AT_LEAST},
    [FIO_GBS] = {"fio", "GB/s", "1 MiB, 16 under way of each process", NAN,
                 SHEET_AT_LEAST},
};

typedef struct files {
  tarn_whole_table_options make;
  tarn_whole_tensor table;
  size_t size;    // bytes of the table
  size_t own_at;  // in it, of this rank's rows
  size_t own;     // bytes of them
  unsigned char *rows;
  char path[TABLE_PATH_SIZE];  // what loads read and stores replace
  char peer[TABLE_PATH_SIZE];  // what pwrites replace
  char peer_new[TABLE_PATH_SIZE];
  int fd;          // of |path|
  uint64_t flags;  // of loads
  table_samples load, unchecked, first, pread, store, pwrite, cold, fio;
} files;

// --- the table ---------------------------------------------------------------

static bool make_table(table_scene *s, files *f) {
  tarn_addr address = 0;
  void *rows = NULL;
  size_t first = 0;
  size_t count = 0;
  bool did =
      table_did(s, tarn_whole_table_create(s->comm, &f->make, &f->table)) &&
      table_did(s,
                tarn_whole_tensor_rows(&f->table, s->rank, &first, &count)) &&
      table_did(s, tarn_whole_tensor_local(&f->table, &address)) &&
      table_did(s, tarn_device_host_view(TARN_HOST, address,
                                         count * s->bench->row_bytes, &rows));
  f->own_at = first * s->bench->row_bytes;
  f->own = count * s->bench->row_bytes;
  f->rows = rows;
  return did;
}

static bool end_table(table_scene *s, files *f) {
  return table_did(s, tarn_whole_destroy(f->table.whole));
}

static void fill(const files *f, uint32_t seed) {
  for (size_t i = 0; i < f->own; i += sizeof(uint32_t)) {
    uint32_t value = (uint32_t)((f->own_at + i) * 2654435761u) + seed;
    memcpy(f->rows + i, &value, sizeof value);
  }
}

static bool is_filled(table_scene *s, const files *f, uint32_t seed) {
  for (size_t i = 0; i < f->own; i += sizeof(uint32_t)) {
    uint32_t wanted = (uint32_t)((f->own_at + i) * 2654435761u) + seed;
    if (memcmp(f->rows + i, &wanted, sizeof wanted) != 0)
      return table_refuse(s, "byte %zu of the table is wrong", f->own_at + i);
  }
  return true;
}

// --- steps -------------------------------------------------------------------

static bool load(table_scene *s, void *context) {
  const files *f = context;
  const tarn_file_options options = {.struct_size = sizeof options,
                                     .flags = f->flags};
  return table_did(s, tarn_whole_load(&f->table, f->path, &options, NULL));
}

static bool load_first(table_scene *s, void *context) {
  files *f = context;
  return make_table(s, f) && load(s, f);
}

static bool store(table_scene *s, void *context) {
  const files *f = context;
  return table_did(s, tarn_whole_store(&f->table, f->path, NULL, NULL));
}

static bool pread_rows(table_scene *s, void *context) {
  const files *f = context;
  for (size_t done = 0; done < f->own;) {
    size_t some = f->own - done < MIB ? f->own - done : MIB;
    ssize_t got =
        pread(f->fd, f->rows + done, some, (off_t)(HEAD + f->own_at + done));
    if (got <= 0) return table_refuse(s, "pread: %s", strerror(errno));
    done += (size_t)got;
  }
  return true;
}

static bool write_rows(table_scene *s, const files *f, int fd) {
  for (size_t done = 0; done < f->own;) {
    size_t some = f->own - done < MIB ? f->own - done : MIB;
    ssize_t put =
        pwrite(fd, f->rows + done, some, (off_t)(HEAD + f->own_at + done));
    if (put <= 0) return table_refuse(s, "pwrite: %s", strerror(errno));
    done += (size_t)put;
  }
  return fdatasync(fd) == 0 ||
         table_refuse(s, "fdatasync: %s", strerror(errno));
}

static bool put_in_place(table_scene *s, const files *f) {
  int folder = open(s->bench->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  bool did =
      folder >= 0 && rename(f->peer_new, f->peer) == 0 && fsync(folder) == 0;
  if (!did) (void)table_refuse(s, "rename: %s", strerror(errno));
  if (folder >= 0) close(folder);
  return did;
}

// As durable as a store.
static bool pwrite_rows(table_scene *s, void *context) {
  const files *f = context;
  int fd = open(f->peer_new, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) (void)table_refuse(s, "%s: %s", f->peer_new, strerror(errno));
  bool did = fd >= 0 && write_rows(s, f, fd);
  if (fd >= 0) close(fd);
  if (!table_agree(s, did)) return false;
  return table_agree(s, s->rank != 0 || put_in_place(s, f));
}

// --- passes ------------------------------------------------------------------

static bool reopen(table_scene *s, files *f) {
  if (f->fd >= 0) close(f->fd);
  f->fd = open(f->path, O_RDONLY | O_CLOEXEC);
  return f->fd >= 0 || table_refuse(s, "%s: %s", f->path, strerror(errno));
}

// Rows go to a file and come back.
static bool check(table_scene *s, files *f) {
  enum { SEED = 1 };
  fill(f, SEED);
  if (!store(s, f) || !table_agree(s, true)) return false;
  memset(f->rows, 0, f->own);
  return load(s, f) && table_agree(s, is_filled(s, f, SEED) && reopen(s, f));
}

static bool time_first(table_scene *s, files *f, table_samples *to) {
  files other = *f;
  return table_time(s, load_first, &other, to) && end_table(s, &other);
}

static bool time_loads(table_scene *s, files *f, bool turned) {
  for (size_t i = 0; i < 3; i++) {
    size_t which = turned ? 2 - i : i;
    table_samples *to[] = {&f->load, &f->pread, &f->unchecked};
    f->flags = which == 2 ? TARN_FILE_UNCHECKED : 0;
    if (!table_time(s, which == 1 ? pread_rows : load, f, to[which]))
      return false;
  }
  f->flags = 0;
  return time_first(s, f, &f->first);
}

static bool time_stores(table_scene *s, files *f, bool turned) {
  table_samples *ours = &f->store;
  table_samples *peer = &f->pwrite;
  if (turned)
    return table_time(s, pwrite_rows, f, peer) && table_time(s, store, f, ours);
  return table_time(s, store, f, ours) && table_time(s, pwrite_rows, f, peer);
}

// The first pass of each is not counted.
static bool measure_warm(table_scene *s, files *f) {
  for (size_t i = 0; i <= s->bench->passes; i++) {
    if (!time_loads(s, f, i % 2 != 0)) return false;
    if (i == 0)
      f->load.count = f->pread.count = f->unchecked.count = f->first.count = 0;
  }
  for (size_t i = 0; i <= s->bench->passes; i++) {
    if (!time_stores(s, f, i % 2 != 0)) return false;
    if (i == 0) f->store.count = f->pwrite.count = 0;
  }
  return table_agree(s, reopen(s, f));
}

// --- past the page cache -----------------------------------------------------

static bool drop_cache(table_scene *s, const files *f) {
  if (fdatasync(f->fd) == 0 &&
      posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED) == 0) {
    return true;
  }
  return table_refuse(s, "cannot empty the page cache: %s", strerror(errno));
}

// By the first rank, while the others wait.
static bool time_fio(table_scene *s, files *f) {
  const table_fio_job job = {.path = f->path,
                             .action = "read",
                             .block = MIB,
                             .depth = DEPTH,
                             .processes = s->bench->ranks,
                             .part = f->size / s->bench->ranks};
  table_fio_speed speed;
  if (s->rank != 0) return table_agree(s, true);
  bool did = table_fio_run(&job, &speed, s->why);
  if (did) table_sample(&f->fio, (double)f->size / speed.read_bytes * 1e9);
  return table_agree(s, did);
}

static bool time_cold(table_scene *s, files *f) {
  return table_agree(s, s->rank != 0 || drop_cache(s, f)) &&
         table_time(s, load, f, &f->cold);
}

// Whether loads pass the page cache here; a skip is no failure.
static bool is_direct(table_scene *s, files *f, bool *out) {
  const tarn_file_options options = {.struct_size = sizeof options};
  tarn_file_report report = {.struct_size = sizeof report};
  *out = false;
  if (!table_agree(s, s->rank != 0 || drop_cache(s, f)) ||
      !table_did(s, tarn_whole_load(&f->table, f->path, &options, &report))) {
    return false;
  }
  bool mine = report.direct_bytes >= report.bytes / 10 * 9;
  if (!mine)
    (void)table_refuse(s, "loads do not pass the page cache in this folder");
  *out = table_agree(s, mine);
  return true;
}

static void skip_cold(table_result *out, const char *why) {
  table_skip(out, COLD_OVER_FIO, why);
  table_skip(out, COLD_GBS, why);
  table_skip(out, FIO_GBS, why);
}

static bool measure_cold(table_scene *s, files *f, table_result *out) {
  size_t passes =
      s->bench->passes < COLD_PASSES ? s->bench->passes : COLD_PASSES;
  bool direct = false;
  if (table_folder_is_memory(s->bench->folder)) {
    skip_cold(out, "the folder is in memory: --folder names another");
    return true;
  }
  if (!is_direct(s, f, &direct)) return false;
  if (!direct) {
    skip_cold(out, s->why);
    return true;
  }
  bool has_fio = true;
  for (size_t i = 0; i < passes; i++) {
    if (!time_cold(s, f)) return false;
    has_fio = has_fio && time_fio(s, f);
  }
  if (!has_fio) {
    table_skip(out, COLD_OVER_FIO, s->why);
    table_skip(out, FIO_GBS, s->why);
  }
  return true;
}

// --- all ---------------------------------------------------------------------

static void note(const files *f, table_result *out) {
  double size = (double)f->size;
  table_note_speedup(out, LOAD_OVER_PREAD, &f->load, &f->pread);
  table_note_speedup(out, UNCHECKED_OVER_PREAD, &f->unchecked, &f->pread);
  table_note_speedup(out, FIRST_OVER_PREAD, &f->first, &f->pread);
  table_note_speedup(out, STORE_OVER_PWRITE, &f->store, &f->pwrite);
  table_note_speedup(out, COLD_OVER_FIO, &f->cold, &f->fio);
  table_note_rate(out, LOAD_GBS, &f->load, size);
  table_note_rate(out, UNCHECKED_GBS, &f->unchecked, size);
  table_note_rate(out, FIRST_GBS, &f->first, size);
  table_note_rate(out, PREAD_GBS, &f->pread, size);
  table_note_rate(out, STORE_GBS, &f->store, size);
  table_note_rate(out, PWRITE_GBS, &f->pwrite, size);
  table_note_rate(out, COLD_GBS, &f->cold, size);
  table_note_rate(out, FIO_GBS, &f->fio, size);
}

static void prepare(const table_scene *s, files *f) {
  const table_bench *b = s->bench;
  size_t size = b->size != 0 ? b->size : usual_size;
  size_t unit = b->ranks * b->row_bytes;
  size_t rows = (size + unit - 1) / unit * b->ranks;
  *f = (files){.size = rows * b->row_bytes, .fd = -1};
  f->make = (tarn_whole_table_options){.struct_size = sizeof f->make,
                                       .type = TARN_WHOLE_CONTINUOUS,
                                       .place = TARN_HOST,
                                       .dtype = TARN_DTYPE_F32,
                                       .rows = rows,
                                       .width = b->row_bytes / sizeof(float)};
  table_path(s, "table.npy", f->path);
  table_path(s, "peer", f->peer);
  table_path(s, "peer.new", f->peer_new);
}

static bool measure(table_scene *s, table_result *out) {
  files f;
  prepare(s, &f);
  if (!make_table(s, &f)) return false;
  bool did = check(s, &f) && measure_warm(s, &f) && measure_cold(s, &f, out);
  note(&f, out);
  if (f.fd >= 0) close(f.fd);
  return did && end_table(s, &f);
}

const table_part table_files_part = {
    .name = "files", .figures = figures, .count = FIGURES, .measure = measure};
