// wrap_kit.h - memory of the program's own, with an owner who
// counts how often he gets it back.
#ifndef TARN_TESTS_SYNCED_WRAP_KIT_H_
#define TARN_TESTS_SYNCED_WRAP_KIT_H_

#include "caffe_kit.h"

enum { OUTSIDE = 2 };

typedef struct owner {
  int calls;
  tarn_place place;
  tarn_addr address;
  size_t size;
} owner;

static unsigned char outside[SIZE];
static owner mine;

static inline tarn_addr address_of(const void *pointer) {
  return (uintptr_t)pointer;
}

static inline void take_back(void *context, tarn_place place, tarn_addr address,
                             size_t size) {
  owner *of = context;
  of->calls++;
  of->place = place;
  of->address = address;
  of->size = size;
}

static inline tarn_wrap_options with(uint32_t flags, owner *of) {
  return (tarn_wrap_options){.struct_size = sizeof(tarn_wrap_options),
                             .flags = flags,
                             .deleter = of != NULL ? take_back : NULL,
                             .context = of};
}

static inline tarn_status try_wrap(tarn_place place, tarn_addr address,
                                   uint32_t flags, owner *of) {
  tarn_wrap_options options = with(flags, of);
  return tarn_synced_wrap(x, place, address, &options);
}

static inline void wrap_host(void *bytes, uint32_t flags, owner *of) {
  assert_ok(try_wrap(TARN_HOST, address_of(bytes), flags, of));
}

static inline void open_wrapped(tarn_device *device, uint32_t flags,
                                owner *of) {
  open_x(device);
  fill_pattern(outside, 0, SIZE, OUTSIDE);
  wrap_host(outside, flags, of);
}

static inline tarn_addr device_memory(unsigned seed) {
  tarn_addr address = 0;
  assert_ok(tarn_device_allocate(tarn_place_on(gpu), SIZE, &address));
  put_on(gpu, address, 0, SIZE, seed);
  return address;
}

static inline void free_device_memory(tarn_addr address) {
  assert_ok(tarn_device_deallocate(tarn_place_on(gpu), address, SIZE));
}

static inline bool is_outside(const void *bytes) {
  tarn_access access;
  begin_on(&access, x, 0, TARN_ALL, TARN_HOST, TARN_READ);
  bool is = access.pointer == bytes;
  assert_ok(tarn_synced_end(&access));
  return is;
}

#endif  // TARN_TESTS_SYNCED_WRAP_KIT_H_
