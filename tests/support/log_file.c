// Files of Tarn's own format, in memory that grows by pages.
#include "support/log_file.h"

#include <stdlib.h>

#include "support/run.h"

static void grow(log_file *file) {
  if (file->size == file->capacity) {
    file->capacity = 2 * file->capacity + TARN__LOG_PAGE;
    file->bytes = realloc(file->bytes, file->capacity);
    ck_assert_ptr_nonnull(file->bytes);
  }
  memset(file->bytes + file->size, 0, TARN__LOG_PAGE);
  file->size += TARN__LOG_PAGE;
}

void log_begin(log_file *file) {
  *file = (log_file){0};
  grow(file);
  tarn__trace_log_header *header = log_header(file);
  memcpy(header->magic, TARN__LOG_MAGIC, sizeof header->magic);
  header->version = TARN__LOG_VERSION;
  header->page_bytes = TARN__LOG_PAGE;
}

void log_free(log_file *file) {
  free(file->bytes);
  *file = (log_file){0};
}

tarn__trace_log_header *log_header(log_file *file) {
  return (tarn__trace_log_header *)(void *)file->bytes;
}

tarn__trace_log_page *log_current(log_file *file) {
  return (tarn__trace_log_page *)(void *)(file->bytes + file->size -
                                          TARN__LOG_PAGE);
}

tarn__trace_log_page *log_page(log_file *file, uint32_t thread) {
  grow(file);
  tarn__log_begin(&file->log, log_current(file), thread,
                  &(tarn__trace_log_event){0});
  return log_current(file);
}

static void make_room(log_file *file, size_t size) {
  file->log.page = log_current(file);  // it may have moved
  if (tarn__log_room(&file->log) < size) {
    (void)log_page(file, file->log.page->thread);
  }
}

size_t log_at(const log_file *file) {
  return file->size - TARN__LOG_PAGE + offsetof(tarn__trace_log_page, records) +
         file->log.used;
}

void log_put(log_file *file, tarn__trace_log_event event) {
  make_room(file, TARN__LOG_MOST_EVENT);
  tarn__log_put_event(&file->log, &event);
}

void log_event(log_file *file, tarn__trace_log_kind kind, uint64_t number,
               uint64_t address, uint64_t size) {
  log_put(
      file,
      (tarn__trace_log_event){
          .kind = kind, .number = number, .address = address, .size = size});
}

void log_raw(log_file *file, const void *bytes, size_t size) {
  make_room(file, size);
  unsigned char *at = file->log.page->records + file->log.used;
  memcpy(at, bytes, size);
  tarn__log_publish(&file->log, at + size);
}

void log_define(log_file *file, tarn__trace_log_definition which, size_t count,
                const uint64_t *numbers) {
  unsigned char bytes[TARN__LOG_PAGE];
  unsigned char *at = bytes;
  *at++ = TARN__LOG_DEFINE;
  *at++ = (unsigned char)which;
  for (size_t i = 0; i < count; i++)
    at = tarn__log_put_number(at, numbers[i]);
  log_raw(file, bytes, (size_t)(at - bytes));
}

void log_text(log_file *file, uint64_t number, const char *text) {
  unsigned char bytes[TARN__LOG_PAGE] = {TARN__LOG_DEFINE, TARN__LOG_TEXT};
  size_t size = strlen(text);
  unsigned char *at = tarn__log_put_number(bytes + 2, number);
  at = tarn__log_put_number(at, size);
  memcpy(at, text, size);
  log_raw(file, bytes, (size_t)(at - bytes) + size);
}
