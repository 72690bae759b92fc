// Reads the options of a request, and compares them between ranks.
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "whole/whole.h"

const char *tarn_whole_type_name(tarn_whole_type type) {
  switch (type) {
    case TARN_WHOLE_CONTINUOUS:
      return "continuous";
    case TARN_WHOLE_CHUNKED:
      return "chunked";
    case TARN_WHOLE_DISTRIBUTED:
      return "distributed";
    case TARN_WHOLE_HIERARCHICAL:
      return "hierarchical";
  }
  return NULL;
}

// --- numbers and places ----------------------------------------------------

static tarn_status check_spread(const tarn_whole_options *options) {
  bool copies = options->spread == TARN_WHOLE_COPIES;
  if (options->spread == TARN_WHOLE_PARTS) return TARN_OK;
  if (!copies || options->type != TARN_WHOLE_HIERARCHICAL) {
    return tarn__fail(TARN_E_INVALID,
                      "whole options: the spread is %d, which %s memory cannot "
                      "have",
                      (int)options->spread,
                      tarn_whole_type_name(options->type));
  }
  if (options->partition == NULL) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "whole options: each machine divides its copy itself, so "
                    "the partition must be NULL");
}

static tarn_status check_numbers(const tarn_whole_options *options) {
  if (tarn_whole_type_name(options->type) == NULL) {
    return tarn__fail(TARN_E_INVALID, "whole options: unknown type %d",
                      (int)options->type);
  }
  if (options->size % options->granularity == 0) return check_spread(options);
  return tarn__fail(
      TARN_E_INVALID,
      "whole options: size %zu is not a multiple of granularity %zu",
      options->size, options->granularity);
}

static tarn_status check_place(tarn_place place) {
  if (place.kind == TARN_PLACE_DEVICE && place.device == NULL) {
    return tarn__fail(
        TARN_E_INVALID,
        "whole options: the place is on a device, but names none");
  }
  if (place.kind == TARN_PLACE_DEVICE || place.kind == TARN_PLACE_HOST) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID,
                    "whole options: place kind %d is neither HOST nor DEVICE",
                    (int)place.kind);
}

// --- what the device can ---------------------------------------------------

// Within a machine, hierarchical memory is of that type.
static bool is_chunked(const tarn__whole_order *order) {
  return order->options.type == TARN_WHOLE_CHUNKED ||
         order->options.type == TARN_WHOLE_HIERARCHICAL;
}

static tarn_status check_extension(const tarn_device_info *info,
                                   const tarn__whole_order *order,
                                   tarn_device_extension bit) {
  bool chunks = order->on_device && is_chunked(order);
  if ((info->extensions & bit) != 0) return TARN_OK;
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "%s: whole memory that is %s needs the extension '%s'%s, "
                    "which the device lacks",
                    info->name, order->kind, tarn_device_extension_name(bit),
                    chunks ? " or 'handles'" : "");
}

static bool has(const tarn_device_info *info, uint32_t bits) {
  return (info->extensions & bits) == bits;
}

// Chunks need no range of addresses that they stand in.
static bool goes_by_handles(const tarn_device_info *info,
                            const tarn__whole_order *order) {
  return is_chunked(order) && order->on_device &&
         !has(info, TARN_EXTENSION_RANGES | TARN_EXTENSION_SHARING) &&
         has(info, TARN_EXTENSION_HANDLES);
}

static tarn_status check_device(const tarn_device_info *info,
                                const tarn__whole_order *order) {
  if (!order->mapped || order->by_handles) return TARN_OK;
  if (!order->on_device) {
    return check_extension(info, order, TARN_EXTENSION_REGISTER);
  }
  TARN__TRY(check_extension(info, order, TARN_EXTENSION_RANGES));
  return check_extension(info, order, TARN_EXTENSION_SHARING);
}

static void say_kind(const char *device_type, tarn__whole_order *order) {
  const char *type = tarn_whole_type_name(order->options.type);
  if (order->options.spread == TARN_WHOLE_COPIES)
    type = "hierarchical in copies";
  if (order->on_device) {
    snprintf(order->kind, sizeof order->kind, "%s on %s%s", type, device_type,
             order->by_handles ? " by handles" : "");
  } else {
    snprintf(order->kind, sizeof order->kind, "%s on the host%s%s", type,
             order->options.place.device != NULL ? " for " : "", device_type);
  }
}

static tarn_status read_device(tarn__whole_order *order) {
  tarn_device *device = order->options.place.device;
  tarn_device_info info = {.struct_size = sizeof info};
  if (device == NULL) {
    say_kind("", order);
    return TARN_OK;
  }
  TARN__TRY(tarn_device_query(device, &info));
  order->by_handles = goes_by_handles(&info, order);
  say_kind(info.type, order);
  return check_device(&info, order);
}

// --- pieces ----------------------------------------------------------------

static tarn_status read_pieces(size_t ranks, tarn__whole_order *order) {
  const tarn_whole_options *options = &order->options;
  size_t least = tarn__os_page();
  size_t rounded = 0;
  if (!order->mapped) return TARN_OK;
  order->piece = 1;
  if (order->by_handles) return TARN_OK;
  if (order->on_device) {
    TARN__TRY(tarn_range_granularity(options->place.device, &least));
  }
  order->piece = tarn__partition_piece(options->size, ranks, least);
  if (tarn_size_align_up(options->size, order->piece, &rounded)) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "whole options: size %zu overflows when rounded up to "
                    "pieces of %zu bytes",
                    options->size, order->piece);
}

tarn_status tarn__order_read(const tarn__whole_request *wish, size_t ranks,
                             tarn__whole_order *out) {
  *out = (tarn__whole_order){
      .dtype = wish->dtype, .width = wish->width, .pager = wish->pager};
  TARN__TRY(tarn__take_struct("whole options", wish->options,
                              TARN__SIZE_UP_TO(tarn_whole_options, name),
                              &out->options, sizeof out->options));
  if (out->options.granularity == 0) out->options.granularity = 1;
  TARN__TRY(check_numbers(&out->options));
  TARN__TRY(check_place(out->options.place));
  out->on_device = out->options.place.kind == TARN_PLACE_DEVICE;
  out->mapped = out->options.type != TARN_WHOLE_DISTRIBUTED;
  TARN__TRY(read_device(out));
  return read_pieces(ranks, out);
}

// --- the same at all ranks -------------------------------------------------

// The words contain all values that must be the same.
tarn_status tarn__order_compare(tarn_comm *comm,
                                const tarn__whole_order *order) {
  size_t size = order->options.size;
  size_t granularity = order->options.granularity;
  const char *dtype = tarn_dtype_name(order->dtype);
  char pieces[40] = "";
  char words[256] = "";
  if (order->mapped && !order->by_handles) {
    snprintf(pieces, sizeof pieces, ", pieces of %zu", order->piece);
  }
  if (order->dtype == TARN_DTYPE_NONE) {
    snprintf(words, sizeof words,
             "whole memory that is %s, %zu bytes in blocks of %zu%s",
             order->kind, size, granularity, pieces);
  } else if (order->width == 0) {
    snprintf(words, sizeof words, "a vector that is %s, %zu x %s%s",
             order->kind, size / granularity, dtype, pieces);
  } else {
    snprintf(words, sizeof words, "a table that is %s, %zu rows of %zu x %s%s",
             order->kind, size / granularity, order->width, dtype, pieces);
  }
  return tarn_comm_same(comm, words, sizeof words, words);
}
