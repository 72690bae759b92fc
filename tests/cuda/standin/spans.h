// spans.h - the bytes that a command means: pieces of blocks, or of memory that
// the driver does not know.
//
// All with the lock of objects held, but standin_span_copy and
// standin_span_fill.
#ifndef TARN_TESTS_CUDA_STANDIN_SPANS_H_
#define TARN_TESTS_CUDA_STANDIN_SPANS_H_

#include "blocks.h"

typedef struct standin_piece {
  standin_block *block;  // NULL: memory of the program. It is held.
  uint64_t tenant;       // that the command means
  unsigned char *at;
  size_t size;
} standin_piece;

// Zero-filled: empty.
typedef struct standin_span {
  standin_piece *pieces;
  size_t count;
  size_t room;
  int device;  // that reads or writes
  bool writes;
} standin_span;

typedef enum standin_side {
  STANDIN_OF_DEVICE,  // what a device reaches
  STANDIN_OF_HOST,    // what the host reaches
} standin_side;

// Adds the |size| bytes at |address|, for work in |context|. A wrong use: they
// are not all there, or not on that side.
tarn__cuda_result standin_span_add(standin_span *span, CUcontext context,
                                   standin_side side, uint64_t address,
                                   size_t size);

// True if all of them are memory that the driver does not know.
bool standin_span_is_pageable(const standin_span *span);

// Just before the bytes are used. A wrong use: they were freed, or are not
// there yet, or the device has no right to them.
tarn__cuda_result standin_span_check(const standin_span *span);

// Gives it back.
void standin_span_end(standin_span *span);

// Of the same size.
void standin_span_copy(const standin_span *to, const standin_span *from);
void standin_span_fill(const standin_span *to, unsigned char value);

#endif  // TARN_TESTS_CUDA_STANDIN_SPANS_H_
