// A resident buffer, and the places that can write to it.
#include "touch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "course.h"

struct touch_buffer {
  tarn_device *device;  // NULL: the host's memory
  tarn_addr memory;
  size_t size;
  size_t *offsets;  // of each slot's block
  bool plain;
};

bool touch_is_plain(tarn_device *device, tarn_addr address, size_t size) {
  void *view = NULL;
  return tarn_device_host_view(tarn_place_on(device), address, size, &view) ==
             TARN_OK &&
         view == (void *)(uintptr_t)address;
}

bool touch_pages(tarn_device *device, bool plain, tarn_addr address,
                 size_t size) {
  if (plain) return course_touch((void *)(uintptr_t)address, size);
  for (size_t at = 0; at < size; at += COURSE_PAGE) {
    if (tarn_device_set(device, address + at, 1, 1, NULL) != TARN_OK) {
      return false;
    }
  }
  return true;
}

// ---------------------------------------------------------------------------
// The buffer
// ---------------------------------------------------------------------------

// Blocks lie where first fit would put them, so that they are as near to those
// touched lately as a good allocator's: caches make the difference.
typedef struct hole {
  size_t offset;
  size_t size;
} hole;

typedef struct layout {
  hole *holes;  // by offset; the last has no end
  size_t count;
  size_t height;
} layout;

static size_t round_up(size_t size) {
  enum { ALIGN = 64 };
  return (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static size_t layout_take(layout *l, size_t size) {
  size_t i = 0;
  while (l->holes[i].size < size)
    i++;
  size_t offset = l->holes[i].offset;
  l->holes[i].offset += size;
  l->holes[i].size -= size;
  if (offset + size > l->height) l->height = offset + size;
  if (l->holes[i].size > 0) return offset;
  l->count--;
  memmove(&l->holes[i], &l->holes[i + 1], (l->count - i) * sizeof(hole));
  return offset;
}

static bool ends_at(const hole *h, size_t offset) {
  return h->offset + h->size == offset;
}

static void layout_give(layout *l, size_t offset, size_t size) {
  size_t i = 0;
  while (l->holes[i].offset < offset)
    i++;
  if (offset + size == l->holes[i].offset) {
    l->holes[i].offset = offset;
    l->holes[i].size += size;
  } else {
    memmove(&l->holes[i + 1], &l->holes[i], (l->count - i) * sizeof(hole));
    l->holes[i] = (hole){offset, size};
    l->count++;
  }
  if (i == 0 || !ends_at(&l->holes[i - 1], l->holes[i].offset)) return;
  l->holes[i - 1].size += l->holes[i].size;
  l->count--;
  memmove(&l->holes[i], &l->holes[i + 1], (l->count - i) * sizeof(hole));
}

// Returns what the blocks take together.
static size_t place_blocks(const request_list *requests, size_t *offsets) {
  size_t *sizes = tool_array(requests->slot_count, sizeof *sizes);
  layout l = {.holes = tool_array(requests->slot_count + 2, sizeof(hole)),
              .count = 1};
  l.holes[0].size = SIZE_MAX / 2;
  for (size_t i = 0; i < requests->count; i++) {
    const request *r = &requests->items[i];
    if (r->size == 0) {
      layout_give(&l, offsets[r->slot], sizes[r->slot]);
    } else {
      sizes[r->slot] = round_up(r->size);
      offsets[r->slot] = layout_take(&l, sizes[r->slot]);
    }
  }
  free(l.holes);
  free(sizes);
  return l.height > 0 ? l.height : 1;
}

static bool take(touch_buffer *b, const char *device) {
  if (device == NULL) {
    b->plain = true;
    return tarn_device_allocate(TARN_HOST, b->size, &b->memory) == TARN_OK;
  }
  if (tarn_device_open(device, &b->device) != TARN_OK) return false;
  if (tarn_device_allocate(tarn_place_on(b->device), b->size, &b->memory) !=
      TARN_OK) {
    return false;
  }
  b->plain = touch_is_plain(b->device, b->memory, b->size);
  return true;
}

touch_buffer *touch_buffer_create(const char *device,
                                  const request_list *requests, char *why) {
  touch_buffer *b = tool_array(1, sizeof *b);
  b->offsets = tool_array_ready(requests->slot_count, sizeof *b->offsets);
  b->size = place_blocks(requests, b->offsets);
  if (take(b, device) && touch_pages(b->device, b->plain, b->memory, b->size)) {
    return b;
  }
  snprintf(why, PEER_TEXT_SIZE, "no buffer to touch: %.200s",
           tarn_last_error());
  touch_buffer_destroy(b);
  return NULL;
}

void touch_buffer_destroy(touch_buffer *b) {
  if (b == NULL) return;
  tarn_place place = b->device == NULL ? TARN_HOST : tarn_place_on(b->device);
  if (b->memory != 0) (void)tarn_device_deallocate(place, b->memory, b->size);
  if (b->device != NULL) (void)tarn_device_close(b->device);
  free(b->offsets);
  free(b);
}

// ---------------------------------------------------------------------------
// The pass
// ---------------------------------------------------------------------------

COURSE_INLINE bool do_nothing(void *state, const request *r) {
  (void)state;
  (void)r;
  return true;
}

// Blocks that follow each other at one place may be of different threads, which
// without an allocator nothing keeps apart.
static void touch_shared(unsigned char *bytes, size_t size) {
  for (size_t at = 0; at < size; at += COURSE_PAGE)
    __atomic_store_n(&bytes[at], 1, __ATOMIC_RELAXED);
}

static bool touch_block(void *state, const request *r) {
  const touch_buffer *b = state;
  tarn_addr address = b->memory + b->offsets[r->slot];
  if (!b->plain) return touch_pages(b->device, false, address, r->size);
  touch_shared((unsigned char *)(uintptr_t)address, r->size);
  return true;
}

bool touch_pass(void *self, const peer_run *run) {
  return course_run(self, run, do_nothing, do_nothing, touch_block);
}
