// Memory of distributed types: a block of the place's pool, unknown to other
// ranks.
#include <string.h>

#include "base/os.h"
#include "base/os_pages.h"
#include "base/status.h"
#include "tarn/alloc.h"
#include "whole/whole.h"

static bool is_of_device(const tarn_whole *whole) {
  return whole->on_device && !tarn_place_equal(whole->place, TARN_HOST);
}

// The kernel promises more memory than there is, and kills the process that
// touches it.
static tarn_status refuse_too_much(const tarn_whole *whole, size_t size) {
  size_t total = 0;
  size_t available = 0;
  if (is_of_device(whole)) {
    TARN__TRY(tarn_device_memory(whole->place.device, &total, &available));
  } else {
    tarn__os_memory(&total, &available);
  }
  if (total == 0 || size <= total) return TARN_OK;
  return tarn__fail(
      TARN_FULL,
      "whole: a part of %zu bytes exceeds the %zu bytes of the memory there",
      size, total);
}

// The driver chooses the pages of a device's own memory.
static tarn_status clear(const tarn_whole *whole, size_t size) {
  void *bytes = NULL;
  tarn_addr address = whole->block.address;
  if (is_of_device(whole)) {
    return tarn_device_set(whole->place.device, address, 0, size, NULL);
  }
  TARN__TRY(tarn_device_host_view(whole->place, address, size, &bytes));
  tarn__os_collapse(bytes, size);
  memset(bytes, 0, size);
  return TARN_OK;
}

static tarn_status make(tarn_whole *whole) {
  size_t size = tarn__whole_part_size(whole, whole->rank);
  size_t align = size < TARN__OS_HUGE ? 0 : TARN__OS_HUGE;
  if (size == 0) return TARN_OK;
  TARN__TRY(refuse_too_much(whole, size));
  tarn_alloc_options options = {.struct_size = sizeof options,
                                .size = size,
                                .align = align,
                                .tag = whole->tag};
  TARN__TRY(tarn_pool_alloc_with(whole->pool, &options, &whole->block));
  whole->charged = size;
  whole->parts[whole->rank] = whole->block.address;
  return clear(whole, size);
}

static tarn_status end(tarn_whole *whole) {
  if (whole->block.pool == NULL) return TARN_OK;
  tarn_status status = tarn_pool_free(&whole->block, NULL);
  whole->block = (tarn_block){.pool = NULL};
  whole->charged = 0;
  return status;
}

const tarn__whole_backing tarn__backing_block = {.make = make, .end = end};
