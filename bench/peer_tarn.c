// Tarn's pools, on the device that is asked for.
#include <stdio.h>
#include <stdlib.h>

#include "course.h"
#include "touch.h"

typedef struct tarn_peer {
  tarn_device *device;
  bool plain;  // the host can write to its blocks
  tarn_pool *pool;
  tarn_block *blocks;    // by slot: callers that keep the block ...
  tarn_addr *addresses;  // ... and callers that keep only its address
} tarn_peer;

COURSE_INLINE bool tarn_peer_alloc(void *state, const request *r) {
  tarn_peer *self = state;
  return tarn_pool_alloc(self->pool, r->size, 0, NULL,
                         &self->blocks[r->slot]) == TARN_OK;
}

COURSE_INLINE bool tarn_peer_free(void *state, const request *r) {
  tarn_peer *self = state;
  return tarn_pool_free(&self->blocks[r->slot], NULL) == TARN_OK;
}

COURSE_INLINE bool tarn_peer_alloc_address(void *state, const request *r) {
  tarn_peer *self = state;
  tarn_block block;
  if (tarn_pool_alloc(self->pool, r->size, 0, NULL, &block) != TARN_OK) {
    return false;
  }
  self->addresses[r->slot] = block.address;
  return true;
}

COURSE_INLINE bool tarn_peer_free_address(void *state, const request *r) {
  tarn_peer *self = state;
  return tarn_pool_free_address(self->pool, self->addresses[r->slot], NULL) ==
         TARN_OK;
}

static bool tarn_peer_touch(void *state, const request *r) {
  tarn_peer *self = state;
  return touch_pages(self->device, self->plain, self->blocks[r->slot].address,
                     r->size);
}

static bool tarn_peer_touch_address(void *state, const request *r) {
  tarn_peer *self = state;
  return touch_pages(self->device, self->plain, self->addresses[r->slot],
                     r->size);
}

static bool tarn_peer_pass(void *self, const peer_run *run) {
  return course_run(self, run, tarn_peer_alloc, tarn_peer_free,
                    tarn_peer_touch);
}

static bool tarn_peer_pass_by_address(void *self, const peer_run *run) {
  return course_run(self, run, tarn_peer_alloc_address, tarn_peer_free_address,
                    tarn_peer_touch_address);
}

static void tarn_peer_destroy(void *state) {
  tarn_peer *self = state;
  if (self->device != NULL) (void)tarn_device_close(self->device);
  free(self->blocks);
  free(self->addresses);
  free(self);
}

static bool look_at_memory(tarn_peer *self) {
  enum { SIZE = 4096 };
  tarn_addr address = 0;
  tarn_place place = tarn_place_on(self->device);
  if (tarn_device_allocate(place, SIZE, &address) != TARN_OK) return false;
  self->plain = touch_is_plain(self->device, address, SIZE);
  return tarn_device_deallocate(place, address, SIZE) == TARN_OK;
}

static void *tarn_peer_create(const peer_order *order, char *why) {
  size_t slots = order->requests->slot_count;
  tarn_peer *self = tool_array(1, sizeof *self);
  if (tarn_device_open(order->device, &self->device) != TARN_OK ||
      tarn_pool_of(tarn_place_on(self->device), &self->pool) != TARN_OK ||
      tarn_pool_set_strategy(self->pool, order->name) != TARN_OK ||
      !look_at_memory(self)) {
    snprintf(why, PEER_TEXT_SIZE, "%.*s", PEER_TEXT_SIZE - 1,
             tarn_last_error());
    tarn_peer_destroy(self);
    return NULL;
  }
  self->blocks = tool_array_ready(slots, sizeof *self->blocks);
  self->addresses = tool_array_ready(slots, sizeof *self->addresses);
  return self;
}

static size_t tarn_peer_held(void *state) {
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  tarn_status status = tarn_pool_query(((tarn_peer *)state)->pool, &stats);
  return status == TARN_OK ? stats.reserved_bytes : 0;
}

const peer_type peer_tarn = {
    .create = tarn_peer_create,
    .destroy = tarn_peer_destroy,
    .alloc = tarn_peer_alloc,
    .free = tarn_peer_free,
    .pass = tarn_peer_pass,
    .pass_by_address = tarn_peer_pass_by_address,
    .held = tarn_peer_held,
    .refusal = tarn_last_error,
    .on_device = true,
};
