// One buffer at the host and on two simulated devices: each asks for the bytes
// that it needs, and at the end it is told what was copied, and what was not.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tarn/tarn.h>

static const size_t part = (size_t)64 << 10;
static const size_t all = (size_t)1 << 20;

static void check(tarn_status status) {
  if (status == TARN_OK) return;
  fprintf(stderr, "synced: %s: %s\n", tarn_status_name(status),
          tarn_last_error());
  exit(EXIT_FAILURE);
}

// What a kernel would do: every byte of the range becomes |value|.
static void write_at(tarn_synced *x, size_t offset, size_t size,
                     tarn_place place, unsigned char value) {
  tarn_access a;
  check(
      tarn_synced_begin(x, offset, size, place, TARN_WRITE_DISCARD, NULL, &a));
  if (a.pointer != NULL) {
    memset(a.pointer, value, a.size);
  } else {
    check(tarn_device_set(place.device, a.address, value, a.size, NULL));
  }
  check(tarn_synced_end(&a));
}

static void read_at(tarn_synced *x, size_t offset, size_t size,
                    tarn_place place) {
  tarn_access a;
  check(tarn_synced_begin(x, offset, size, place, TARN_READ, NULL, &a));
  check(tarn_synced_end(&a));
}

static size_t sum_at_host(tarn_synced *x) {
  size_t sum = 0;
  tarn_access a;
  check(tarn_synced_begin(x, 0, TARN_ALL, TARN_HOST, TARN_READ, NULL, &a));
  for (size_t i = 0; i < a.size; i++)
    sum += ((const unsigned char *)a.pointer)[i];
  check(tarn_synced_end(&a));
  return sum;
}

static tarn_status print_pair(void *context, const tarn_traffic *t) {
  char from[32], to[32];
  (void)context;
  printf(
      "%-6s to %-6s %2llu copies %7llu moved %7llu valid %7llu discarded"
      " %7llu outside\n",
      tarn_place_text(t->from, from, sizeof from),
      tarn_place_text(t->to, to, sizeof to), (unsigned long long)t->copies,
      (unsigned long long)t->bytes_moved, (unsigned long long)t->bytes_valid,
      (unsigned long long)t->bytes_discarded,
      (unsigned long long)t->bytes_outside);
  return TARN_OK;
}

int main(void) {
  tarn_device *device[2];
  tarn_synced *x;
  check(tarn_device_open("sim:0", &device[0]));
  check(tarn_device_open("sim:1", &device[1]));
  tarn_place one = tarn_place_on(device[0]);
  tarn_place other = tarn_place_on(device[1]);
  check(tarn_synced_create(all, NULL, &x));

  write_at(x, 0, all, TARN_HOST, 1);
  read_at(x, 0, all / 2, one);          // each device has a half of it
  read_at(x, all / 2, all / 2, other);  //
  write_at(x, 0, part, one, 2);         // a part of it changes there
  read_at(x, 0, 2 * part, other);       // directly from device to device
  size_t sum = sum_at_host(x);          // the host lacks only that part
  read_at(x, 0, all / 2, one);          // which is where it was all the time

  printf("the sum of the bytes is %zu\n", sum);
  check(tarn_synced_traffic(x, print_pair, NULL));
  check(tarn_synced_destroy(x));
  check(tarn_device_close(device[1]));
  check(tarn_device_close(device[0]));
  return sum == all + part ? EXIT_SUCCESS : EXIT_FAILURE;
}
