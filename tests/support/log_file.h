// log_file.h - files of Tarn's own format, made by hand.
//
//   log_file file;
//   log_begin(&file);
//   log_page(&file, 1);
//   log_event(&file, TARN__LOG_ALLOC, 1, 4096, 100);
//   tarn_trace_read_bytes(file.bytes, file.size, "made", NULL, &trace);
//   log_free(&file);
#ifndef TARN_TESTS_SUPPORT_LOG_FILE_H_
#define TARN_TESTS_SUPPORT_LOG_FILE_H_

#include "trace/log.h"

typedef struct log_file {
  unsigned char *bytes;
  size_t size;
  size_t capacity;
  tarn__trace_log_writer log;  // of the last page
} log_file;

// A header and no page.
void log_begin(log_file *file);
void log_free(log_file *file);

tarn__trace_log_header *log_header(log_file *file);

// Begins a page of |thread|, whose bases are 0.
tarn__trace_log_page *log_page(log_file *file, uint32_t thread);

// The page that is written now.
tarn__trace_log_page *log_current(log_file *file);

// The byte of the file at which the next record will stand.
size_t log_at(const log_file *file);

// Records; all begin a page of the same thread where there is no room.
void log_put(log_file *file, tarn__trace_log_event event);
void log_event(log_file *file, tarn__trace_log_kind kind, uint64_t number,
               uint64_t address, uint64_t size);
void log_define(log_file *file, tarn__trace_log_definition which, size_t count,
                const uint64_t *numbers);
#define LOG_DEFINE(file, which, ...)                                     \
  log_define(file, which,                                                \
             sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), \
             (const uint64_t[]){__VA_ARGS__})
void log_text(log_file *file, uint64_t number, const char *text);

// Any bytes where a record should be.
void log_raw(log_file *file, const void *bytes, size_t size);

#endif  // TARN_TESTS_SUPPORT_LOG_FILE_H_
