// own_device.c - a program with a device of its own, "mine:0", here of plain
// memory: no plug-in is loaded, and pools work with it. As C and as C++.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tarn/device_abi.h>
#include <tarn/tarn.h>

static C_Status count_devices(size_t *count) {
  *count = 1;
  return C_SUCCESS;
}

static C_Status allocate(const C_Device device, void **ptr, size_t size) {
  (void)device;
  *ptr = malloc(size);
  return *ptr != NULL ? C_SUCCESS : C_FAILED;
}

static C_Status deallocate(const C_Device device, void *ptr, size_t size) {
  (void)device;
  (void)size;
  free(ptr);
  return C_SUCCESS;
}

static C_Status copy(const C_Device device, void *to, const void *from,
                     size_t size) {
  (void)device;
  memcpy(to, from, size);
  return C_SUCCESS;
}

static C_Status say_memory(const C_Device device, size_t *total, size_t *left) {
  (void)device;
  *total = *left = (size_t)64 << 20;
  return C_SUCCESS;
}

static C_Status say_chunk(const C_Device device, size_t *size) {
  (void)device;
  *size = 256;
  return C_SUCCESS;
}

// What a shared object exports as InitPlugin. Tarn stands in for the rest.
static void init(CustomRuntimeParams *params) {
  static char type[] = "mine";
  C_DeviceInterface *table = params->interface;
  size_t head = sizeof table->size;
  memset((char *)table + head, 0, table->size - head);
  table->get_device_count = count_devices;
  table->device_memory_allocate = allocate;
  table->device_memory_deallocate = deallocate;
  table->memory_copy_h2d = table->memory_copy_d2h = copy;
  table->memory_copy_d2d = copy;
  table->device_memory_stats = say_memory;
  table->device_min_chunk_size = say_chunk;
  params->version.minor = params->version.patch = 1;
  params->device_type = type;
}

static bool done(tarn_status status) {
  if (status != TARN_OK) fprintf(stderr, "%s\n", tarn_last_error());
  return status == TARN_OK;
}

int main(void) {
  tarn_device *mine;
  tarn_pool *pool;
  tarn_block block;
  char text[] = "hello from a pool", back[sizeof text];
  if (!done(tarn_plugin_register(init, NULL, "own_device")) ||
      !done(tarn_device_open("mine:0", &mine)) ||
      !done(tarn_pool_of(tarn_place_on(mine), &pool)) ||
      !done(tarn_pool_alloc(pool, sizeof text, 0, NULL, &block)) ||
      !done(tarn_copy_h2d(mine, block.address, text, sizeof text, NULL)) ||
      !done(tarn_copy_d2h(mine, back, block.address, sizeof text, NULL)) ||
      !done(tarn_pool_free(&block, NULL)))
    return EXIT_FAILURE;
  printf("%s: %s\n", tarn_device_name(mine), back);
  return done(tarn_device_close(mine)) ? EXIT_SUCCESS : EXIT_FAILURE;
}
