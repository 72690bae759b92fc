// What InitPlugin does with the table that it is offered.
//
// Hosts of four layouts exist: their tables have 1128, 1040, 1032 and 912
// bytes. A plug-in may decline a layout, by leaving device_type NULL; it fills
// an accepted one within the given bounds. To see which bytes it writes, it
// gets more room than it is told, filled with a pattern:
//
//   | size | slots of the layout | pattern ... up to 4 KiB |
#include <string.h>

#include "check.h"

enum { ROOM = 4096, PATTERN = 0x5a, KNOWN_END = 472 };

typedef struct offer {
  unsigned char table[ROOM];
  unsigned char params[ROOM];
  size_t table_size;
  size_t params_size;
} offer;

static C_DeviceInterface *table_of(offer *o) {
  return (C_DeviceInterface *)(void *)o->table;
}

static CustomRuntimeParams *params_of(offer *o) {
  return (CustomRuntimeParams *)(void *)o->params;
}

// Offers a layout as hosts do: zero within, here the pattern behind.
static void make_offer(conform_target *t, offer *o, size_t params_size,
                       size_t table_size) {
  o->table_size = table_size;
  o->params_size = params_size;
  memset(o->table, 0, table_size);
  memset(o->table + table_size, PATTERN, ROOM - table_size);
  memset(o->params, 0, params_size);
  memset(o->params + params_size, PATTERN, ROOM - params_size);
  table_of(o)->size = table_size;
  params_of(o)->size = params_size;
  params_of(o)->interface = table_of(o);
  t->entry.init(params_of(o));
}

// Sizes of the parameters and of the table.
static const size_t layouts[][2] = {
    {96, 1128}, {96, 1040}, {96, 1032}, {88, 912}};
enum { LAYOUT_COUNT = sizeof layouts / sizeof layouts[0] };

static bool is_accepted(offer *o) {
  return params_of(o)->device_type != NULL;
}

static bool is_kept(conform_target *t, const char *what,
                    const unsigned char *bytes, size_t size) {
  for (size_t i = size; i < ROOM; i++) {
    EXPECT_QUIRK(t, bytes[i] == PATTERN,
                 "InitPlugin wrote byte %zu of %s of which it was offered "
                 "%zu; Tarn leaves room behind",
                 i, what, size);
  }
  return true;
}

static bool check_layout(conform_target *t) {
  offer o;
  size_t table_size = layouts[t->with][1];
  size_t params_size = layouts[t->with][0];
  make_offer(t, &o, params_size, table_size);
  if (!is_kept(t, "a table", o.table, table_size) ||
      !is_kept(t, "parameters", o.params, params_size)) {
    return false;
  }
  if (!is_accepted(&o)) return conform_note(t, "declined");
  return true;
}

// That it is so is what the runner found out when it loaded the plug-in.
static bool accepted(conform_target *t) {
  return t->plugin != NULL;
}

// Offers the layouts in turn until one is accepted.
static bool offer_any(conform_target *t, offer *o) {
  for (size_t i = 0; i < LAYOUT_COUNT; i++) {
    make_offer(t, o, layouts[i][0], layouts[i][1]);
    if (is_accepted(o)) return true;
  }
  return conform_fail(t,
                      "InitPlugin declines every layout when it is asked "
                      "again");
}

static bool size_kept(conform_target *t) {
  offer o;
  if (!offer_any(t, &o)) return false;
  EXPECT(t, params_of(&o)->interface == table_of(&o),
         "InitPlugin replaced params->interface");
  EXPECT_QUIRK(t, table_of(&o)->size == o.table_size,
               "interface->size is %zu after InitPlugin, not %zu as offered; "
               "Tarn does not read it",
               table_of(&o)->size, o.table_size);
  return true;
}

static bool beyond_472(conform_target *t) {
  offer o;
  size_t set = 0;
  size_t first = 0;
  if (!offer_any(t, &o)) return false;
  for (size_t at = KNOWN_END; at < o.table_size; at += sizeof(void *)) {
    if (!conform_has(table_of(&o), at)) continue;
    if (set++ == 0) first = at;
  }
  if (set == 0) return true;
  return conform_note(t,
                      "%zu slots from byte %zu on are set; what they mean "
                      "differs from host to host, and Tarn does not call them",
                      set, first);
}

static bool reserved_null(conform_target *t) {
  for (size_t i = 0; i < 8; i++) {
    EXPECT_QUIRK(t, t->abi->reserved_dev_api[i] == NULL,
                 "reserved_dev_api[%zu] is set; Tarn does not call it", i);
    EXPECT_QUIRK(t, t->abi->reserved_mem_api[i] == NULL,
                 "reserved_mem_api[%zu] is set; Tarn does not call it", i);
  }
  return true;
}

static bool version(conform_target *t) {
  offer o;
  if (!offer_any(t, &o)) return false;
  C_RuntimeVersion v = params_of(&o)->version;
  EXPECT_QUIRK(t, v.major == 0 && v.minor == 1 && v.patch == 1,
               "params->version is %zu.%zu.%zu, not 0.1.1; Tarn does not read "
               "it, other hosts refuse the plug-in",
               v.major, v.minor, v.patch);
  return true;
}

static bool device_type(conform_target *t) {
  for (size_t i = 0; i < LAYOUT_COUNT; i++) {
    offer o;
    make_offer(t, &o, layouts[i][0], layouts[i][1]);
    const char *type = params_of(&o)->device_type;
    EXPECT(t, type == NULL || strcmp(type, t->plugin->type) == 0,
           "device_type is '%.60s' in a table of %zu bytes, but was '%s'", type,
           layouts[i][1], t->plugin->type);
  }
  return true;
}

static bool repeated(conform_target *t) {
  offer a;
  offer b;
  if (!offer_any(t, &a) || !offer_any(t, &b)) return false;
  for (size_t at = sizeof(size_t); at < KNOWN_END; at += sizeof(void *)) {
    EXPECT(t, memcmp(a.table + at, b.table + at, sizeof(void *)) == 0,
           "%s differs when InitPlugin is called a second time",
           conform_function_name(at));
  }
  return true;
}

static bool other_hosts(conform_target *t) {
  static const size_t wanted[] = {
      NEED(set_device),         NEED(get_device),
      NEED(create_stream),      NEED(destroy_stream),
      NEED(synchronize_stream), NEED(create_event),
      NEED(record_event),       NEED(destroy_event),
      NEED(synchronize_event),  NEED(stream_wait_event),
      NEED(get_device_list),    NEED(synchronize_device)};
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    if (conform_has(t->abi, wanted[i])) continue;
    return conform_skip(t,
                        "Tarn can do without %s; other hosts of the ABI "
                        "refuse a plug-in that lacks it",
                        conform_function_name(wanted[i]));
  }
  return true;
}

#define OFFER(params, table)                          \
  "C_DeviceInterface *table = calloc(1, 4096);\n"     \
  "CustomRuntimeParams *params = calloc(1, 4096);\n"  \
  "table->size = " #table ", params->size = " #params \
  ";\n"                                               \
  "params->interface = table;\n"                      \
  "InitPlugin(params);\n"

#define LAYOUT(index, params, table)                                          \
  {                                                                           \
    CHECK("loading.table_of_" #table "_bytes", check_layout, .with = (index), \
          .stage = CHECK_LOADED),                                             \
        .code =                                                               \
            OFFER(params, table) "// the bytes from (char *)table + " #table  \
                                 " on, and from params + " #params            \
                                 " on, are\n"                                 \
                                 "// as they were, whether or not "           \
                                 "device_type is set\n"                       \
  }

static const conform_check checks[] = {
    {CHECK("loading.accepted", accepted, .stage = CHECK_LOADED),
     .code = OFFER(
         96, 1040) "// device_type and the required functions are set; of "
                   "streams, events,\n"
                   "// pinned and unified memory there is all or nothing\n"},
    LAYOUT(0, 96, 1128),
    LAYOUT(1, 96, 1040),
    LAYOUT(2, 96, 1032),
    LAYOUT(3, 88, 912),
    {CHECK("loading.size_kept", size_kept, .stage = CHECK_LOADED),
     .code = OFFER(
         96,
         1128) "assert(table->size == 1128 && params->interface == table);\n"},
    {CHECK("loading.nothing_beyond_472", beyond_472, .stage = CHECK_LOADED),
     .code = OFFER(
         96, 1128) "// which of the pointers from (char *)table + 472 on are "
                   "set?\n"},
    {CHECK("loading.reserved_slots", reserved_null, .stage = CHECK_LOADED),
     .code = OFFER(96, 1040) "assert(table->reserved_dev_api[0] == NULL);  // "
                             "and all the others\n"},
    {CHECK("loading.version", version, .stage = CHECK_LOADED),
     .code = OFFER(96, 1040) "assert(params->version.major == 0 && "
                             "params->version.minor == 1 &&\n"
                             "       params->version.patch == 1);\n"},
    {CHECK("loading.device_type", device_type, .stage = CHECK_LOADED),
     .code = OFFER(96, 1040) "// in tables of other sizes, too: "
                             "params->device_type is the same name\n"},
    {CHECK("loading.repeated", repeated, .stage = CHECK_LOADED),
     .code = OFFER(96, 1040) "// once more with a second table: both hold the "
                             "same functions\n"},
    {CHECK("loading.other_hosts", other_hosts, .stage = CHECK_LOADED),
     .code = OFFER(
         96, 1040) "// set_device, get_device, streams and events are there\n"},
};

const conform_subject conform_loading = CONFORM_SUBJECT(checks);
