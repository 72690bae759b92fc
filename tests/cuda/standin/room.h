// room.h - how much of a device's memory is taken. With the lock of objects
// held.
#ifndef TARN_TESTS_CUDA_STANDIN_ROOM_H_
#define TARN_TESTS_CUDA_STANDIN_ROOM_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STANDIN_UNIT = 512 };

// What a block of |size| bytes takes; SIZE_MAX if that is too much.
size_t standin_room_for(size_t size);

// False: there is not as much left.
bool standin_room_take(int device, size_t size);
void standin_room_give(int device, size_t size);

size_t standin_room_left(int device);

// Of all devices.
uint64_t standin_room_taken(void);

#endif  // TARN_TESTS_CUDA_STANDIN_ROOM_H_
