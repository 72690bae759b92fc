// pickle_writer.h - writes pickles opcode by opcode, and snapshots out of them.
//
//   pickle_writer w = {0};
//   pickle_begin(&w, 4);
//   pickle_open_list(&w);
//   pickle_int(&w, 7);
//   pickle_close_list(&w);
//   pickle_end(&w);            w.bytes[0 .. w.size)
//   pickle_free(&w);
#ifndef TARN_TESTS_SUPPORT_PICKLE_WRITER_H_
#define TARN_TESTS_SUPPORT_PICKLE_WRITER_H_

#include <stddef.h>
#include <stdint.h>

typedef struct pickle_writer {
  unsigned char *bytes;
  size_t size;
  size_t capacity;
} pickle_writer;

void pickle_begin(pickle_writer *w, int protocol);
void pickle_end(pickle_writer *w);
void pickle_free(pickle_writer *w);

void pickle_raw(pickle_writer *w, const void *bytes, size_t size);
void pickle_op(pickle_writer *w, int opcode);
// An opcode and |size| bytes of argument, little-endian.
void pickle_op_number(pickle_writer *w, int opcode, uint64_t n, size_t size);

void pickle_int(pickle_writer *w, uint64_t n);
void pickle_text(pickle_writer *w, const char *text);
void pickle_open_list(pickle_writer *w);
void pickle_close_list(pickle_writer *w);
void pickle_open_dict(pickle_writer *w);
void pickle_close_dict(pickle_writer *w);
void pickle_put(pickle_writer *w, uint32_t slot);
void pickle_get(pickle_writer *w, uint32_t slot);

// --- parts of a snapshot ---------------------------------------------------

// {"segments": [ .. up to pickle_middle, and then the events of device 0 up to
// pickle_finish.
void pickle_snapshot(pickle_writer *w, int protocol);
void pickle_middle(pickle_writer *w);
void pickle_finish(pickle_writer *w);

// A segment of device 0 at |address|; its blocks follow, then the close.
void pickle_open_segment(pickle_writer *w, uint64_t address, uint64_t size);
void pickle_close_segment(pickle_writer *w);
void pickle_block(pickle_writer *w, uint64_t address, uint64_t size,
                  uint64_t requested, const char *state);

// An event without a stack.
void pickle_event(pickle_writer *w, const char *action, uint64_t address,
                  uint64_t size);
// {"filename": file, "line": line, "name": function}
void pickle_frame(pickle_writer *w, const char *file, uint64_t line,
                  const char *function);

// Writes what there is to the file at |path|, and begins anew; what cannot be
// written ends the test program.
void pickle_save(pickle_writer *w, const char *path);

#endif  // TARN_TESTS_SUPPORT_PICKLE_WRITER_H_
