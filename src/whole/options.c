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
  }
  return NULL;
}

// --- the struct ------------------------------------------------------------

static tarn_status take_options(const tarn_whole_options *given,
                                tarn_whole_options *out) {
  tarn_status status = tarn__take_struct(
      "whole options", given, TARN__SIZE_UP_TO(tarn_whole_options, name), out,
      sizeof *out);
  if (status != TARN_OK) return status;
  out->struct_size = sizeof *out;
  if (out->granularity == 0) out->granularity = 1;
  return TARN_OK;
}

static tarn_status check_numbers(const tarn_whole_options *options) {
  if (tarn_whole_type_name(options->type) == NULL) {
    return tarn__fail(TARN_E_INVALID, "whole options: unknown type %d",
                      (int)options->type);
  }
  if (options->size % options->granularity == 0) return TARN_OK;
  return tarn__fail(
      TARN_E_INVALID,
      "whole options: size %zu is not a multiple of granularity %zu",
      options->size, options->granularity);
}

static tarn_status check_place(tarn_place place) {
  bool possible = place.kind == TARN_PLACE_HOST ||
                  (place.kind == TARN_PLACE_DEVICE && place.device != NULL);
  if (possible) return TARN_OK;
  if (place.kind == TARN_PLACE_DEVICE) {
    return tarn__fail(
        TARN_E_INVALID,
        "whole options: the place is on a device, but names none");
  }
  return tarn__fail(TARN_E_INVALID,
                    "whole options: place kind %d is neither HOST nor DEVICE",
                    (int)place.kind);
}

// --- what the device can ---------------------------------------------------

static tarn_status check_extension(const tarn_device_info *info,
                                   const tarn__whole_order *order,
                                   tarn_device_extension bit) {
  bool chunks = order->on_device && order->options.type == TARN_WHOLE_CHUNKED;
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
  return order->options.type == TARN_WHOLE_CHUNKED && order->on_device &&
         !has(info, TARN_EXTENSION_RANGES | TARN_EXTENSION_SHARING) &&
         has(info, TARN_EXTENSION_HANDLES);
}

static tarn_status check_device(const tarn_device_info *info,
                                const tarn__whole_order *order) {
  if (!order->mapped || order->by_handles) return TARN_OK;
  if (!order->on_device) {
    return check_extension(info, order, TARN_EXTENSION_REGISTER);
  }
  tarn_status status = check_extension(info, order, TARN_EXTENSION_RANGES);
  if (status != TARN_OK) return status;
  return check_extension(info, order, TARN_EXTENSION_SHARING);
}

static void say_kind(const char *device_type, tarn__whole_order *order) {
  const tarn_place place = order->options.place;
  const char *type = tarn_whole_type_name(order->options.type);
  if (order->on_device) {
    snprintf(order->kind, sizeof order->kind, "%s on %s%s", type, device_type,
             order->by_handles ? " by handles" : "");
  } else if (place.device != NULL) {
    snprintf(order->kind, sizeof order->kind, "%s on the host for %s", type,
             device_type);
  } else {
    snprintf(order->kind, sizeof order->kind, "%s on the host", type);
  }
}

static tarn_status read_device(tarn__whole_order *order) {
  tarn_device *device = order->options.place.device;
  tarn_device_info info = {.struct_size = sizeof info};
  if (device == NULL) {
    say_kind("", order);
    return TARN_OK;
  }
  tarn_status status = tarn_device_query(device, &info);
  if (status != TARN_OK) return status;
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
    tarn_status status = tarn_range_granularity(options->place.device, &least);
    if (status != TARN_OK) return status;
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
  *out = (tarn__whole_order){.dtype = wish->dtype, .width = wish->width};
  tarn_status status = take_options(wish->options, &out->options);
  if (status == TARN_OK) status = check_numbers(&out->options);
  if (status == TARN_OK) status = check_place(out->options.place);
  if (status != TARN_OK) return status;
  out->on_device = out->options.place.kind == TARN_PLACE_DEVICE;
  out->mapped = out->options.type != TARN_WHOLE_DISTRIBUTED;
  status = read_device(out);
  return status == TARN_OK ? read_pieces(ranks, out) : status;
}

// --- the same at all ranks -------------------------------------------------

// The compared values, without padding.
typedef struct likeness {
  size_t size;
  size_t granularity;
  size_t piece;
  size_t dtype;
  size_t width;
  char kind[sizeof(((tarn__whole_order *)NULL)->kind)];
} likeness;

_Static_assert(sizeof(likeness) <= TARN_COMM_MOST_SAME, "it can be compared");

static void say_pieces(const tarn__whole_order *order, char *out,
                       size_t out_size) {
  out[0] = '\0';
  if (!order->mapped || order->by_handles) return;
  snprintf(out, out_size, ", pieces of %zu", order->piece);
}

static void say(const tarn__whole_order *order, char *out, size_t out_size) {
  size_t size = order->options.size;
  size_t granularity = order->options.granularity;
  const char *dtype = tarn_dtype_name(order->dtype);
  char pieces[40];
  say_pieces(order, pieces, sizeof pieces);
  if (order->dtype == TARN_DTYPE_NONE) {
    snprintf(out, out_size,
             "whole memory that is %s, %zu bytes in blocks of %zu%s",
             order->kind, size, granularity, pieces);
  } else if (order->width == 0) {
    snprintf(out, out_size, "a vector that is %s, %zu x %s%s", order->kind,
             size / granularity, dtype, pieces);
  } else {
    snprintf(out, out_size, "a table that is %s, %zu rows of %zu x %s%s",
             order->kind, size / granularity, order->width, dtype, pieces);
  }
}

tarn_status tarn__order_compare(tarn_comm *comm,
                                const tarn__whole_order *order) {
  char words[192];
  likeness mine;
  memset(&mine, 0, sizeof mine);
  mine.size = order->options.size;
  mine.granularity = order->options.granularity;
  mine.piece = order->piece;
  mine.dtype = (size_t)order->dtype;
  mine.width = order->width;
  snprintf(mine.kind, sizeof mine.kind, "%s", order->kind);
  say(order, words, sizeof words);
  return tarn_comm_same(comm, &mine, sizeof mine, words);
}
