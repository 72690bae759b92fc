// What was obtained.
#include <string.h>

#include "base/os_pages.h"
#include "base/status.h"
#include "whole/whole.h"

// The kernel knows the pages behind what the host can touch: a device's own
// memory is of other pages.
static void look_at_pages(const tarn_whole *whole, tarn_whole_info *info) {
  tarn__os_pages pages;
  void *bytes = NULL;
  tarn_addr address = whole->parts[whole->rank];
  size_t size = tarn__whole_part_size(whole, whole->rank);
  info->numa_node = -1;
  if (size == 0 ||
      tarn_device_host_view(whole->place, address, size, &bytes) != TARN_OK) {
    return;
  }
  if (!tarn__os_look_at_pages(bytes, size, &pages)) return;
  info->page_size = pages.page_size;
  info->huge_bytes = pages.huge_bytes;
  info->numa_node = tarn__os_node_of(bytes);
}

static void describe(const tarn_whole *whole, tarn_whole_info *info) {
  info->type = whole->type;
  info->place = whole->place;
  info->size = whole->size;
  info->granularity = whole->granularity;
  info->rank = whole->rank;
  info->ranks = whole->ranks;
  info->piece_granularity = whole->segments != NULL ? whole->piece : 0;
  info->charged = whole->charged;
  look_at_pages(whole, info);
}

tarn_status tarn_whole_query(tarn_whole *whole, tarn_whole_info *out_info) {
  size_t size = 0;
  tarn_whole_info info = {.struct_size = 0};
  if (out_info == NULL) return tarn__fail(TARN_E_INVALID, "whole info: NULL");
  if (!tarn__struct_size(out_info->struct_size,
                         TARN__SIZE_UP_TO(tarn_whole_info, charged),
                         sizeof info, &size)) {
    return tarn__fail(TARN_E_INVALID, "whole info: struct_size is %zu",
                      out_info->struct_size);
  }
  memset(out_info, 0, size);
  tarn_status status = tarn__whole_check(whole);
  if (status == TARN_OK) describe(whole, &info);
  memcpy(out_info, &info, size);
  out_info->struct_size = size;
  return status;
}
