// umpire_kit.h - lines of Umpire's replay log, as its versions write
// them, for the tests of its reader.
#ifndef TARN_TESTS_TRACE_UMPIRE_KIT_H_
#define TARN_TESTS_TRACE_UMPIRE_KIT_H_

#include "lines_kit.h"

// The form since 2022; times are microseconds, three digits of them.
#define AT(us) "\"timestamp\":1700000000000" us "000"
#define MAKE(us, ref, name)                                  \
  "{\"category\":\"operation\",\"name\":\"make_allocator\"," \
  "\"numeric_args\":{\"introspection\":1},\"string_args\":{" \
  "\"allocator_ref\":\"" ref                                 \
  "\",\"arg0\":\"HOST\",\"type\":\"Quick\"},"                \
  "\"tags\":{\"allocator_name\":\"" name "\"," REPLAY "}," AT(us) "}\n"
#define REPLAY "\"replay\":\"true\""
#define ALLOCATE(us, ref, ptr, size)                                     \
  "{\"category\":\"operation\",\"name\":\"allocate\",\"numeric_args\":{" \
  "\"size\":" size "},\"string_args\":{\"allocator_ref\":\"" ref         \
  "\",\"pointer\":\"" ptr "\"},\"tags\":{" REPLAY "}," AT(us) "}\n"
#define NAMED(us, ref, ptr, size, name)                                        \
  "{\"category\":\"operation\",\"name\":\"named_allocate\",\"numeric_args\":{" \
  "\"size\":" size "},\"string_args\":{\"allocator_ref\":\"" ref               \
  "\",\"pointer\":\"" ptr "\",\"allocation_name\":\"" name                     \
  "\"},\"tags\":{" REPLAY "}," AT(us) "}\n"
#define DEALLOCATE(us, ref, ptr)                                             \
  "{\"category\":\"operation\",\"name\":\"deallocate\",\"string_args\":{"    \
  "\"allocator_ref\":\"" ref "\",\"pointer\":\"" ptr "\"},\"tags\":{" REPLAY \
  "}," AT(us) "}\n"
#define REALLOCATE(us, ref, ptr, size)                                         \
  "{\"category\":\"operation\",\"name\":\"reallocate\",\"numeric_args\":{"     \
  "\"size\":" size "},\"string_args\":{\"allocator_ref\":\"" ref               \
  "\",\"current_ptr\":\"" ptr "\"},\"tags\":{\"allocator_name\":\"A\"," REPLAY \
  "}," AT(us) "}\n"
#define REALLOCATED(us, ref, ptr)                                            \
  "{\"category\":\"operation\",\"name\":\"reallocate\",\"numeric_args\":{}," \
  "\"string_args\":{\"allocator_ref\":\"" ref "\",\"new_ptr\":\"" ptr        \
  "\"},\"tags\":{\"allocator_name\":\"A\"}," AT(us) "}\n"
#define VERSION                                                            \
  "{\"category\":\"metadata\",\"name\":\"version\",\"numeric_args\":{"     \
  "\"major\":2024,\"minor\":2,\"patch\":0},\"string_args\":{\"rc\":\"\"}," \
  "\"tags\":{}," AT("001") "}\n"

// The form before; times are two digits.
#define OLD(uid, us, event)                                                 \
  "{ \"kind\":\"replay\", \"uid\":" uid ", \"timestamp\":15583880522106" us \
  "757, \"event\": \"" event "\""
#define OLD_HOST(ref)                   \
  OLD("77", "00", "makeMemoryResource") \
  ", \"payload\": { \"name\": \"HOST\" }, \"result\": \"" ref "\" }\n"
#define OLD_WANT(us, event, of) \
  OLD("77", us, event) ", \"payload\": { " of " } }\n"
#define OLD_GOT(us, event, of, ptr) \
  OLD("77", us, event)              \
  ", \"payload\": { " of " }, \"result\": { \"memory_ptr\": \"" ptr "\" } }\n"
#define OF(ref, size) "\"allocator_ref\": \"" ref "\", \"size\": " size
#define FROM(ptr, ref, size) \
  "\"ptr\": \"" ptr "\", \"size\": " size ", \"allocator_ref\": \"" ref "\""

#endif  // TARN_TESTS_TRACE_UMPIRE_KIT_H_
