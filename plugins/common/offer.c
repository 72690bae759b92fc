// InitPlugin, for tables of which the first 472 bytes are used. Nothing beyond
// what the host offers is written.
#include "offer.h"

#include <stdbool.h>
#include <string.h>

enum {
  TABLE_KNOWN = offsetof(C_DeviceInterface, beyond),
  TABLE_LIMIT = 64 << 10,  // a host that offers more never set the size
  PARAMS_KNOWN = sizeof(CustomRuntimeParamsA),
};

static bool is_usable(const C_DeviceInterface *interface) {
  return interface != NULL && interface->size >= TABLE_KNOWN &&
         interface->size <= TABLE_LIMIT;
}

// A host's table may be longer than ours or shorter: its own size counts.
static void fill(C_DeviceInterface *interface, const C_DeviceInterface *table) {
  size_t size = interface->size;
  memset(interface, 0, size);
  memcpy(interface, table, TABLE_KNOWN);
  interface->size = size;
}

void tarn__common_offer(CustomRuntimeParams *params,
                        const C_DeviceInterface *table, char *type,
                        char *sub_type) {
  if (params == NULL || params->size < PARAMS_KNOWN) return;
  params->device_type = NULL;
  params->sub_device_type = NULL;
  if (!is_usable(params->interface)) return;
  fill(params->interface, table);
  params->version = (C_RuntimeVersion){0, 1, 1};
  params->device_type = type;
  params->sub_device_type = sub_type;
}
