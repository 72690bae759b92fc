// synced_ground.h - simulated devices, their streams, and bytes that are looked
// at later.
//
// What is read from a place on a stream is queued there, into a slot that
// remembers what it must turn out to be; it is compared when the slot is wanted
// again, or its stream has been waited for. What is written on a stream comes
// out of a slot as well. So an order that the code fails to keep shows as
// wrong bytes, and not only where everything happens to be slow.
#ifndef TARN_TESTS_SUPPORT_SYNCED_GROUND_H_
#define TARN_TESTS_SUPPORT_SYNCED_GROUND_H_

#include "support/synced_model.h"

enum { SG_STREAMS = 2 * SM_DEVICES, SG_SLOTS = 96 };

typedef struct sg_config {
  unsigned devices;
  uint64_t latency_ns;
  bool unified;
} sg_config;

// Opens everything; the places are then in |sm_places|: the host, the devices,
// and their unified memory. Tests run it once in a process.
void sg_open(const sg_config *config);

// Gives all back, and looks whether all came back.
void sg_close(void);

extern unsigned sg_devices;
extern unsigned sg_streams;
extern tarn_stream *sg_stream[SG_STREAMS];

static inline tarn_device *sg_device(unsigned index) {
  return sm_places[1 + index].device;
}

// A name of the place: the host has several.
tarn_place sg_name_of(unsigned place);

// Of the whole run.
uint64_t sg_random(void);
size_t sg_below(size_t limit);
void sg_seed(unsigned long seed);

// The bytes of |access|, in the order of |stream| (-1: now), are |expected|.
void sg_check(const tarn_access *access, unsigned place, int stream,
              const unsigned char *expected);

// Puts |bytes| there.
void sg_store(const tarn_access *access, unsigned place, int stream,
              const unsigned char *bytes);

// Waits for one stream, or all there are on all devices, and compares.
void sg_wait(unsigned stream);
void sg_wait_all(void);

// Ends a stream, and makes a new one of the same device.
void sg_renew(unsigned stream);

#endif  // TARN_TESTS_SUPPORT_SYNCED_GROUND_H_
