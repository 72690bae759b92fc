// Pickles for tests; out of memory ends the test program.
#include "support/pickle_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pickle_raw(pickle_writer *w, const void *bytes, size_t size) {
  if (w->capacity - w->size < size) {
    w->capacity = (w->size + size) * 2;
    w->bytes = realloc(w->bytes, w->capacity);
    if (w->bytes == NULL) abort();
  }
  memcpy(w->bytes + w->size, bytes, size);
  w->size += size;
}

void pickle_op(pickle_writer *w, int opcode) {
  unsigned char byte = (unsigned char)opcode;
  pickle_raw(w, &byte, 1);
}

void pickle_op_number(pickle_writer *w, int opcode, uint64_t n, size_t size) {
  pickle_op(w, opcode);
  for (size_t i = 0; i < size; i++)
    pickle_op(w, (int)(n >> (8 * i) & 0xff));
}

void pickle_begin(pickle_writer *w, int protocol) {
  w->size = 0;
  pickle_op_number(w, 0x80, (uint64_t)protocol, 1);
}

void pickle_end(pickle_writer *w) {
  pickle_op(w, '.');
}

void pickle_free(pickle_writer *w) {
  free(w->bytes);
  *w = (pickle_writer){0};
}

void pickle_int(pickle_writer *w, uint64_t n) {
  pickle_op_number(w, 0x8a, 9, 1);  // LONG1 of 9 bytes: never negative
  for (size_t i = 0; i < 8; i++)
    pickle_op(w, (int)(n >> (8 * i) & 0xff));
  pickle_op(w, 0);
}

void pickle_text(pickle_writer *w, const char *text) {
  size_t size = strlen(text);
  pickle_op_number(w, 'X', size, 4);
  pickle_raw(w, text, size);
}

void pickle_open_list(pickle_writer *w) {
  pickle_raw(w, "](", 2);
}

void pickle_close_list(pickle_writer *w) {
  pickle_op(w, 'e');
}

void pickle_open_dict(pickle_writer *w) {
  pickle_raw(w, "}(", 2);
}

void pickle_close_dict(pickle_writer *w) {
  pickle_op(w, 'u');
}

void pickle_put(pickle_writer *w, uint32_t slot) {
  pickle_op_number(w, 'r', slot, 4);
}

void pickle_get(pickle_writer *w, uint32_t slot) {
  pickle_op_number(w, 'j', slot, 4);
}

// --- parts of a snapshot ---------------------------------------------------

static void entry(pickle_writer *w, const char *key, uint64_t n) {
  pickle_text(w, key);
  pickle_int(w, n);
}

static void text_entry(pickle_writer *w, const char *key, const char *text) {
  pickle_text(w, key);
  pickle_text(w, text);
}

void pickle_snapshot(pickle_writer *w, int protocol) {
  pickle_begin(w, protocol);
  pickle_open_dict(w);
  pickle_text(w, "segments");
  pickle_open_list(w);
}

void pickle_middle(pickle_writer *w) {
  pickle_close_list(w);
  pickle_text(w, "device_traces");
  pickle_open_list(w);
  pickle_open_list(w);
}

void pickle_finish(pickle_writer *w) {
  pickle_close_list(w);
  pickle_close_list(w);
  pickle_close_dict(w);
  pickle_end(w);
}

void pickle_open_segment(pickle_writer *w, uint64_t address, uint64_t size) {
  pickle_open_dict(w);
  entry(w, "device", 0);
  entry(w, "address", address);
  entry(w, "total_size", size);
  entry(w, "stream", 0);
  pickle_text(w, "blocks");
  pickle_open_list(w);
}

void pickle_close_segment(pickle_writer *w) {
  pickle_close_list(w);
  pickle_close_dict(w);
}

void pickle_block(pickle_writer *w, uint64_t address, uint64_t size,
                  uint64_t requested, const char *state) {
  pickle_open_dict(w);
  entry(w, "address", address);
  entry(w, "size", size);
  entry(w, "requested_size", requested);
  text_entry(w, "state", state);
  pickle_close_dict(w);
}

void pickle_event(pickle_writer *w, const char *action, uint64_t address,
                  uint64_t size) {
  pickle_open_dict(w);
  text_entry(w, "action", action);
  entry(w, "addr", address);
  entry(w, "size", size);
  entry(w, "stream", 0);
  pickle_close_dict(w);
}

void pickle_frame(pickle_writer *w, const char *file, uint64_t line,
                  const char *function) {
  pickle_open_dict(w);
  text_entry(w, "filename", file);
  entry(w, "line", line);
  text_entry(w, "name", function);
  pickle_close_dict(w);
}

void pickle_save(pickle_writer *w, const char *path) {
  FILE *out = fopen(path, "wb");
  if (out == NULL || fwrite(w->bytes, 1, w->size, out) != w->size ||
      fclose(out) != 0) {
    perror(path);
    abort();
  }
  pickle_free(w);
}
