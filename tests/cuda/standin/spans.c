// Spans: a range of addresses may lie over several mappings, each of which is a
// piece.
#include "spans.h"

#include <stdlib.h>
#include <string.h>

#include "report.h"

enum { RIGHT_TO_READ = 1, RIGHT_TO_WRITE = 3 };

// --- beginning and end -----------------------------------------------------

static bool has_room(standin_span *span) {
  if (span->count < span->room) return true;
  size_t room = span->room != 0 ? 2 * span->room : 4;
  standin_piece *grown = realloc(span->pieces, room * sizeof *grown);
  if (grown == NULL) return false;
  span->pieces = grown;
  span->room = room;
  return true;
}

static tarn__cuda_result add(standin_span *span, const standin_piece *piece) {
  if (!has_room(span)) return TARN__CU_ERROR_OUT_OF_MEMORY;
  span->pieces[span->count++] = *piece;
  if (piece->block != NULL) standin_block_use(piece->block);
  return TARN__CU_SUCCESS;
}

static tarn__cuda_result check_block(const standin_block *block,
                                     CUcontext context, standin_side side,
                                     uint64_t address, size_t size) {
  unsigned long long shown = address;
  const char *name = standin_sort_name(block->sort);
  bool is_host = !standin_block_is_closed(block) ||
                 block->sort == STANDIN_PINNED ||
                 block->sort == STANDIN_REGISTERED;
  if (block->freed) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "0x%llx is in %s that was freed", shown, name);
  }
  if (side == STANDIN_OF_HOST && !is_host) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "0x%llx is in %s, which the host does not reach",
                         shown, name);
  }
  if ((block->sort == STANDIN_DEVICE || block->sort == STANDIN_POOLED) &&
      block->context != context) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "0x%llx is in %s of another context", shown, name);
  }
  if (block->sort != STANDIN_MAPPED &&
      address - block->address + size > block->size) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "%zu bytes at byte %llu of %s of %zu bytes", size,
                         shown - block->address, name, block->size);
  }
  return TARN__CU_SUCCESS;
}

static tarn__cuda_result add_plain(standin_span *span, standin_side side,
                                   uint64_t address, size_t size) {
  if (side == STANDIN_OF_DEVICE) {
    return standin_wrong(TARN__CU_ERROR_INVALID_VALUE,
                         "0x%llx is no memory of a device",
                         (unsigned long long)address);
  }
  return add(span, &(standin_piece){.at = (unsigned char *)(uintptr_t)address,
                                    .size = size});
}

static tarn__cuda_result add_first(standin_span *span, CUcontext context,
                                   standin_side side, uint64_t address,
                                   size_t size, size_t *out_size) {
  *out_size = size;
  standin_block *block = standin_block_at(address);
  if (block == NULL) return add_plain(span, side, address, size);
  tarn__cuda_result error = check_block(block, context, side, address, size);
  if (error != TARN__CU_SUCCESS) return error;
  size_t offset = (size_t)(address - block->address);
  if (block->size - offset < size) *out_size = block->size - offset;
  return add(span, &(standin_piece){.block = block,
                                    .tenant = block->tenant,
                                    .at = block->bytes + offset,
                                    .size = *out_size});
}

tarn__cuda_result standin_span_add(standin_span *span, CUcontext context,
                                   standin_side side, uint64_t address,
                                   size_t size) {
  span->device = context->device;
  while (size > 0) {
    size_t taken = 0;
    tarn__cuda_result error =
        add_first(span, context, side, address, size, &taken);
    if (error != TARN__CU_SUCCESS) return error;
    address += taken;
    size -= taken;
  }
  return TARN__CU_SUCCESS;
}

void standin_span_end(standin_span *span) {
  for (size_t i = 0; i < span->count; i++) {
    if (span->pieces[i].block != NULL) {
      standin_block_unuse(span->pieces[i].block);
    }
  }
  free(span->pieces);
  *span = (standin_span){.count = 0};
}

// --- what they are ---------------------------------------------------------

bool standin_span_is_pageable(const standin_span *span) {
  for (size_t i = 0; i < span->count; i++) {
    if (span->pieces[i].block != NULL) return false;
  }
  return true;
}

static tarn__cuda_result check_piece(const standin_span *span,
                                     const standin_piece *piece) {
  const standin_block *block = piece->block;
  if (block == NULL) return TARN__CU_SUCCESS;
  const char *name = standin_sort_name(block->sort);
  if (block->present != piece->tenant) {
    const char *why = block->freed || block->tenant != piece->tenant
                          ? "was freed before the command ran"
                          : "is not there when the command runs, in the order "
                            "of streams";
    return standin_wrong(TARN__CU_ERROR_ILLEGAL_ADDRESS, "%s %s", name, why);
  }
  unsigned needed = span->writes ? RIGHT_TO_WRITE : RIGHT_TO_READ;
  if ((block->rights[span->device] & needed) != needed) {
    return standin_wrong(TARN__CU_ERROR_ILLEGAL_ADDRESS,
                         "device %d has no right to %s %s", span->device,
                         span->writes ? "write" : "read", name);
  }
  return TARN__CU_SUCCESS;
}

tarn__cuda_result standin_span_check(const standin_span *span) {
  for (size_t i = 0; i < span->count; i++) {
    tarn__cuda_result error = check_piece(span, &span->pieces[i]);
    if (error != TARN__CU_SUCCESS) return error;
  }
  return TARN__CU_SUCCESS;
}

// --- their bytes -----------------------------------------------------------

void standin_span_copy(const standin_span *to, const standin_span *from) {
  size_t i = 0, j = 0, in_to = 0, in_from = 0;
  while (i < to->count && j < from->count) {
    const standin_piece *a = &to->pieces[i];
    const standin_piece *b = &from->pieces[j];
    size_t left = a->size - in_to, other = b->size - in_from;
    size_t size = left < other ? left : other;
    memmove(a->at + in_to, b->at + in_from, size);
    in_to += size;
    in_from += size;
    if (in_to == a->size) i++, in_to = 0;
    if (in_from == b->size) j++, in_from = 0;
  }
}

void standin_span_fill(const standin_span *to, unsigned char value) {
  for (size_t i = 0; i < to->count; i++)
    memset(to->pieces[i].at, value, to->pieces[i].size);
}
