// Stores a table and loads it, by threads, as traced.c wants to see it:
//
//   table_program FILE     prints the bytes that the load has read, and how
//   many
//                          of them past the page cache
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "tarn/table.h"

static bool make(tarn_whole_tensor *out) {
  tarn_comm *comm = NULL;
  const tarn_comm_options alone = {.struct_size = sizeof alone,
                                   .flags = TARN_COMM_ALONE};
  const tarn_whole_table_options options = {.struct_size = sizeof options,
                                            .type = TARN_WHOLE_CHUNKED,
                                            .place = TARN_HOST,
                                            .dtype = TARN_DTYPE_F32,
                                            .rows = 30000,
                                            .width = 64};
  return tarn_comm_from_environment(&alone, &comm) == TARN_OK &&
         tarn_whole_table_create(comm, &options, out) == TARN_OK;
}

static bool forget_cached(const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  bool did = fd >= 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
  if (fd >= 0) (void)close(fd);
  return did;
}

int main(int argc, char **argv) {
  tarn_whole_tensor t;
  const tarn_file_options options = {.struct_size = sizeof options,
                                     .flags = TARN_FILE_THREADS};
  tarn_file_report report = {.struct_size = sizeof report};
  bool did = argc == 2 && make(&t) &&
             tarn_whole_store(&t, argv[1], &options, NULL) == TARN_OK &&
             forget_cached(argv[1]) &&
             tarn_whole_load(&t, argv[1], &options, &report) == TARN_OK;
  if (!did) {
    fprintf(stderr, "%s\n", tarn_last_error());
    return 1;
  }
  printf("%zu %zu %s\n", (size_t)report.bytes, (size_t)report.direct_bytes,
         report.method);
  return 0;
}
