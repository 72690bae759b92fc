// peer_abi.h - what a shared object defines so that `tarn bench pool` measures
// its allocator beside Tarn's pools: `--pool ./peer.so` or
// `--pool ./peer.so:OPTIONS`. It needs nothing of Tarn but this header, and may
// be C++.
//
// Each row of the benchmark is a process of its own that calls tarn_peer_open
// once, and nothing after its last request.
#ifndef TARN_BENCH_PEER_ABI_H_
#define TARN_BENCH_PEER_ABI_H_

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TARN_PEER_API __attribute__((visibility("default")))

enum { TARN_PEER_WHY_SIZE = 256 };

// Prepares |device|, "cuda:0", for the first request. |options| is what follows
// the file's name and a colon; "": nothing. False: |why|, TARN_PEER_WHY_SIZE
// bytes, says why there will be no request.
TARN_PEER_API bool tarn_peer_open(const char *device, const char *options,
                                  char *why);

TARN_PEER_API void *tarn_peer_alloc(size_t size);  // NULL: refused
TARN_PEER_API void tarn_peer_free(void *block);

// Bytes that the allocator holds of the device; 0: unknown.
TARN_PEER_API size_t tarn_peer_held(void);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_BENCH_PEER_ABI_H_
