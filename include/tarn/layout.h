// layout.h - the declarations of Tarn's headers as JSON, for other languages.
//
// A binding (ctypes, cffi, Rust) needs each enumerator, struct field and
// function argument as the library was compiled. tarn_layout_json describes
// them: a binding is generated from the text, and compared with the library
// that it is loaded with later.
//
// The text is one JSON document (RFC 8259) of ASCII characters. These keys
// stay; new ones may come:
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
// and "[count]" behind the type of an array. A name is a type of C or of this
// document, or a foreign type to which only pointers occur. A field that is a
// pointer to a function has "returns" and "arguments" in place of "type";
// elsewhere such a pointer is the name of a callback and "*". Fields of a
// struct that overlap belong to an unnamed union. A struct follows those that
// it uses.
//
// The document lacks inline functions (a binding writes its own), macros that
// are not numbers, and tarn/device_abi.h, which is a foreign interface.
//
// docs/contracts.md lists what may change and when; docs/bindings.md describes
// how to write a binding.
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
// Cost:     none; the text is a constant of some 90 KiB.
// Errors:   none.
TARN_API const char *tarn_layout_json(void);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_LAYOUT_H_
