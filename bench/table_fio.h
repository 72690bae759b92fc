// table_fio.h - what fio, a program of Debian's, gets out of a file by direct
// reads and writes.
#ifndef TARN_BENCH_TABLE_FIO_H_
#define TARN_BENCH_TABLE_FIO_H_

#include <stdbool.h>
#include <stddef.h>

typedef struct table_fio_job {
  const char *path;    // a file that is there
  const char *action;  // "read", "randread", "randrw": as fio calls it
  size_t block;        // bytes of a request
  size_t depth;        // requests of a process under way
  size_t processes;    // that have a part of the file each
  size_t part;         // bytes of one
  double seconds;      // for which it goes round; 0: once through all
} table_fio_job;

// Of all processes together.
typedef struct table_fio_speed {
  double read_bytes;  // a second
  double reads;
  double written_bytes;
  double writes;
} table_fio_speed;

// False: |why|, TABLE_TEXT_SIZE bytes, says why not; fio is not installed, for
// example.
bool table_fio_run(const table_fio_job *job, table_fio_speed *out, char *why);

#endif  // TARN_BENCH_TABLE_FIO_H_
