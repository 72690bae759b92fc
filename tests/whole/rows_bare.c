// Rows of wholes on devices that lack something, as most do: sim, without
// gather and scatter of its own, without pinned memory, or without an
// extension.
#include "device/plugin.h"
#include "rows_kit.h"

// --- the devices -----------------------------------------------------------

static void bare_init(CustomRuntimeParams *params) {
  static char type[] = "bare";
  tarn__sim_init_plugin(params);
  if (params->device_type != NULL) params->device_type = type;
}

// Its places on the host are plain memory, which it does not reach.
static void init_without_pinned(CustomRuntimeParams *params) {
  bare_init(params);
  if (params->interface == NULL) return;
  params->interface->host_memory_allocate = NULL;
  params->interface->host_memory_deallocate = NULL;
}

static void init_with_the_least(CustomRuntimeParams *params) {
  bare_init(params);
  if (params->interface == NULL) return;
  params->interface->memory_copy_p2p = NULL;
  params->interface->async_memory_copy_h2d = NULL;
  params->interface->async_memory_copy_d2h = NULL;
  params->interface->async_memory_copy_d2d = NULL;
  params->interface->async_memory_copy_p2p = NULL;
  params->interface->device_memory_set = NULL;
}

static const tarn_device_ext *ext_without_rows(void) {
  static tarn_device_ext ext;
  ext = *tarn__sim_device_ext();
  ext.gather = NULL;
  ext.scatter = NULL;
  ext.scatter_add = NULL;
  return &ext;
}

static tarn_place open_bare(size_t number, tarn_place_kind kind) {
  tarn_place place = {.device = NULL, .kind = kind};
  char name[32];
  snprintf(name, sizeof name, "bare:%zu", number);
  MUST_BE(tarn_device_open(name, &place.device), TARN_OK);
  return place;
}

// --- all that there is at either end ---------------------------------------

static const shape shapes[] = {
    {.text = "as it is",
     .table = TARN_DTYPE_F32,
     .dense = TARN_DTYPE_F32,
     .index = TARN_DTYPE_I64,
     .rows = 31,
     .width = 8,
     .count = 30,
     .gap = 4,
     .bad = true},
    {.text = "converted",
     .table = TARN_DTYPE_I16,
     .dense = TARN_DTYPE_I64,
     .index = TARN_DTYPE_I32,
     .rows = 40,
     .width = 5,
     .count = 30,
     .trim = 1},
    {.text = "rows in two pieces",
     .table = TARN_DTYPE_F32,
     .dense = TARN_DTYPE_F32,
     .index = TARN_DTYPE_I32,
     .rows = 9,
     .width = 5003,
     .count = 8},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void play_actions(scene *c, tarn_whole_type type) {
  my.text = c->s->text;
  raise_scene(c, type);
  for (action a = GATHER; a < ACTIONS; a++)
    play(c, a);
  strike_scene(c);
}

static void play_types(tarn_place place, tarn_place at, tarn_stream *stream,
                       bool has_extension) {
  for (size_t s = 0; s < SHAPES; s++) {
    for (size_t t = 0; t < TYPES; t++) {
      scene c = {.s = &shapes[s], .place = place, .at = at, .stream = stream};
      if (has_extension || type_at(t) == TARN_WHOLE_DISTRIBUTED)
        play_actions(&c, type_at(t));
    }
  }
}

static void play_places(bool has_extension) {
  static const tarn_place_kind homes[] = {TARN_PLACE_DEVICE, TARN_PLACE_HOST};
  static const tarn_place_kind kinds[] = {TARN_PLACE_DEVICE, TARN_PLACE_HOST,
                                          TARN_PLACE_UNIFIED};
  tarn_stream *stream = NULL;
  configure_sim();
  tarn_place other = open_bare(my.ranks + my.rank, TARN_PLACE_DEVICE);
  tarn_place place = open_bare(my.rank, TARN_PLACE_DEVICE);
  MUST_BE(tarn_stream_create(place.device, &stream), TARN_OK);
  for (size_t h = 0; h < 2; h++) {
    place.kind = homes[h];
    play_types(place, TARN_HOST, NULL, has_extension);
    play_types(place, other, NULL, has_extension);
    for (size_t k = 0; k < 3; k++) {
      tarn_place at = {.device = place.device, .kind = kinds[k]};
      play_types(place, at, NULL, has_extension);
      play_types(place, at, stream, has_extension);
    }
  }
  MUST_BE(tarn_stream_destroy(stream), TARN_OK);
  MUST_BE(tarn_device_close(place.device), TARN_OK);
  MUST_BE(tarn_device_close(other.device), TARN_OK);
}

static void have_no_rows(void) {
  MUST_BE(tarn_plugin_register(bare_init, ext_without_rows, "bare"), TARN_OK);
  play_places(true);
}

WHOLE_TEST(a_device_without_rows, 2, "without rows", have_no_rows)

static void have_nothing_pinned(void) {
  MUST_BE(
      tarn_plugin_register(init_without_pinned, tarn__sim_device_ext, "bare"),
      TARN_OK);
  play_places(true);
}

WHOLE_TEST(a_device_without_pinned_memory, 2, "without pinned memory",
           have_nothing_pinned)

static void have_no_extension(void) {
  MUST_BE(tarn_plugin_register(init_with_the_least, NULL, "bare"), TARN_OK);
  play_places(false);
}

WHOLE_TEST(a_device_without_extension, 2, "without an extension",
           have_no_extension)
