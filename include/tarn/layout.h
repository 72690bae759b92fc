// layout.h - what Tarn's headers declare, for those who cannot read C.
//
// A binding of another language (ctypes, cffi, Rust) must know each number of
// an enumeration, each field of a struct and each function's arguments as the
// library was compiled with them. tarn_layout_json says it, so that a binding
// is made from it, and compared with the library that it meets later.
//
// The text is one JSON document (RFC 8259) of ASCII characters. Keys that stand
// here stay; new ones may come:
//
//   {
//     "layout": 1,               rises when a key here changes its meaning
//     "version": "0.1.0",        of the library, as tarn_version() has it
//     "byte_order": "little",    or "big"
//     "pointer_size": 8,
//     "constants": {"TARN_DIM_BATCH": -1, ...},
//     "enums": {"tarn_status": {"size": 4, "values": {"TARN_OK": 0, ...}}},
//     "types": {"tarn_addr": "uint64_t", ...},
//     "callbacks": {"tarn_log_fn": {"returns": "void", "arguments":
//         ["void *", "tarn_log_level", "const char *"]}, ...},
//     "opaque": ["tarn_device", ...],
//     "structs": {"tarn_shape": {"size": 16, "align": 8, "fields": {
//         "dims": {"offset": 0, "size": 8, "type": "const int64_t *"}, ...}}},
//     "functions": {"tarn_status_name": {"returns": "const char *",
//         "arguments": ["tarn_status"], "names": ["status"]}, ...}
//   }
//
// Types are written as in C, without "struct" and "enum": a name, "const", "*",
// and "[count]" behind the type of an array. The name is one of C's, or stands
// in this document; one that does not is somebody else's, and only pointers to
// it occur. A field that is a pointer to a function has no "type" but "returns"
// and "arguments"; elsewhere such a pointer is a callback's name and "*".
// Fields of a struct that overlap are those of a union without a name. A struct
// may use those that stand before it.
//
// Not in it: what is inline in a header (a binding writes it anew, or does
// without), macros that are no numbers, and tarn/device_abi.h, which is
// somebody else's.
//
// What of all this may change, and when: docs/contracts.md. How to write a
// binding: docs/bindings.md.
#ifndef TARN_LAYOUT_H_
#define TARN_LAYOUT_H_

#include "tarn/base.h"

#ifdef __cplusplus
extern "C" {
#endif

// The document of this library. In Python:
//
//   library = ctypes.CDLL("libtarn.so.0")
//   library.tarn_layout_json.restype = ctypes.c_char_p
//   layout = json.loads(library.tarn_layout_json())
//   layout["structs"]["tarn_block"]["size"]  # 32
//
// Lifetime: as long as the library; the same pointer each time.
// Threads:  any.
// Cost:     none; it is a constant of some 90 KiB.
// Errors:   none.
TARN_API const char *tarn_layout_json(void);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_LAYOUT_H_
