// Addresses, owners, and a description of the memory that was obtained.
#include <assert.h>
#include <string.h>

#include "base/os_pages.h"
#include "base/status.h"
#include "whole/whole.h"

tarn_comm *tarn_whole_comm(const tarn_whole *whole) {
  return whole != NULL ? whole->comm : NULL;
}

// --- addresses -------------------------------------------------------------

static tarn_status check(const tarn_whole *whole, const void *out) {
  tarn_status status = tarn__whole_check(whole);
  if (status != TARN_OK || out != NULL) return status;
  return tarn__fail(TARN_E_INVALID, "whole: NULL");
}

tarn_status tarn__whole_lacks(const tarn_whole *whole, const char *what) {
  char place[64];
  if (whole->pager != NULL) {
    return tarn__fail(TARN_E_UNSUPPORTED, "whole memory on a disk has no %s",
                      what);
  }
  return tarn__fail(TARN_E_UNSUPPORTED, "%s whole memory at %s has no %s",
                    tarn_whole_type_name(whole->type),
                    tarn_place_text(whole->place, place, sizeof place), what);
}

// Whether |rank|'s part has an address here.
static bool reaches(const tarn_whole *whole, size_t rank) {
  if (whole->inner != NULL) return tarn__hierarchy_is_here(whole, rank);
  return whole->mapped || (rank == whole->rank && whole->pager == NULL);
}

tarn_status tarn__whole_check_rank(const tarn_whole *whole, size_t rank) {
  if (rank < whole->ranks) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "whole: rank %zu is not below %zu", rank,
                    whole->ranks);
}

tarn_status tarn_whole_of_rank(tarn_whole *whole, size_t rank,
                               tarn_whole_part *out) {
  if (out != NULL) *out = (tarn_whole_part){.address = 0};
  TARN__TRY(check(whole, out));
  TARN__TRY(tarn__whole_check_rank(whole, rank));
  assert(out != NULL);
  *out = (tarn_whole_part){.address = whole->parts[rank],
                           .size = tarn__whole_part_size(whole, rank),
                           .offset = whole->offsets[rank]};
  if (reaches(whole, rank)) return TARN_OK;
  return tarn__whole_lacks(
      whole, whole->inner != NULL ? "addresses of parts on other machines: use "
                                    "tarn_whole_gather and tarn_whole_scatter"
                                  : "addresses of other ranks' parts");
}

tarn_status tarn_whole_local(tarn_whole *whole, tarn_whole_part *out) {
  if (out != NULL) *out = (tarn_whole_part){.address = 0};
  TARN__TRY(check(whole, out));
  return tarn_whole_of_rank(whole, whole->rank, out);
}

tarn_status tarn_whole_global(tarn_whole *whole, tarn_addr *out_address) {
  if (out_address != NULL) *out_address = 0;
  TARN__TRY(check(whole, out_address));
  bool has = whole->type == TARN_WHOLE_CONTINUOUS ||
             (whole->mapped && !whole->on_device);
  if (!has) return tarn__whole_lacks(whole, "global address");
  assert(out_address != NULL);
  *out_address = whole->base;
  return TARN_OK;
}

tarn_status tarn_whole_reference(tarn_whole *whole,
                                 tarn_reference *out_reference) {
  if (out_reference != NULL) *out_reference = (tarn_reference){.count = 0};
  TARN__TRY(check(whole, out_reference));
  if (!whole->mapped) return tarn__whole_lacks(whole, "reference");
  assert(out_reference != NULL);
  *out_reference = whole->reference;
  return TARN_OK;
}

tarn_status tarn_whole_owner(tarn_whole *whole, size_t offset,
                             size_t *out_rank) {
  if (out_rank != NULL) *out_rank = 0;
  TARN__TRY(check(whole, out_rank));
  if (offset >= whole->size) {
    return tarn__fail(TARN_E_INVALID,
                      "whole: offset %zu is not below the size, %zu", offset,
                      whole->size);
  }
  assert(out_rank != NULL);
  *out_rank = tarn__partition_owner(whole->offsets, whole->ranks, offset);
  return TARN_OK;
}

// --- what was obtained -----------------------------------------------------

// The kernel knows the pages of memory that the host can access, not those of a
// device's own memory.
static void look_at_pages(const tarn_whole *whole, tarn_whole_info *info) {
  tarn__os_pages pages;
  void *bytes = NULL;
  tarn_addr address = whole->parts[whole->rank];
  size_t size = tarn__whole_part_size(whole, whole->rank);
  info->numa_node = -1;
  if (size == 0 || whole->pager != NULL ||
      tarn_device_host_view(whole->place, address, size, &bytes) != TARN_OK) {
    return;
  }
  if (!tarn__os_look_at_pages(bytes, size, &pages)) return;
  info->page_size = pages.page_size;
  info->huge_bytes = pages.huge_bytes;
  info->numa_node = tarn__os_node_of(bytes);
}

tarn_status tarn_whole_query(tarn_whole *whole, tarn_whole_info *out_info) {
  size_t size = 0;
  if (out_info == NULL) return tarn__fail(TARN_E_INVALID, "whole info: NULL");
  if (!tarn__struct_size(out_info->struct_size,
                         TARN__SIZE_UP_TO(tarn_whole_info, charged),
                         sizeof *out_info, &size)) {
    return tarn__fail(TARN_E_INVALID, "whole info: struct_size is %zu",
                      out_info->struct_size);
  }
  memset(out_info, 0, size);
  out_info->struct_size = size;
  TARN__TRY(tarn__whole_check(whole));
  const tarn_whole *backed = whole->inner != NULL ? whole->inner : whole;
  tarn_whole_info info = {
      .struct_size = size,
      .type = whole->type,
      .place = whole->place,
      .size = whole->size,
      .granularity = whole->granularity,
      .rank = whole->rank,
      .ranks = whole->ranks,
      .piece_granularity = backed->segments != NULL ? backed->piece : 0,
      .charged = backed->charged,
      .spread = whole->spread};
  look_at_pages(whole, &info);
  memcpy(out_info, &info, size);
  return TARN_OK;
}
